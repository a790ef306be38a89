/** TABLE of metric families: type, help, closed label sets and buckets. What is not here cannot be counted. */

/** One family. Every combination of its labels is in the text from the start, with its first value. */
export interface Family {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  /** Label name to every value that it can take. */
  readonly labels?: Readonly<Record<string, readonly string[]>>;
  /** Upper bounds of a histogram, ascending, without +Inf. */
  readonly buckets?: readonly number[];
  /** Value of a gauge before anyone set it; 0 if left out. */
  readonly first?: number;
}

const PROVIDERS = ["vllm", "sglang", "gemini", "mlx"] as const;
const MEDIA_LATENCY_MS = [50, 100, 250, 500, 1000, 2500, 5000, 10000] as const;

function counter(help: string) {
  return { type: "counter", help } as const;
}

function gauge(help: string, first = 0) {
  return { type: "gauge", help, first } as const;
}

function histogram(help: string, buckets: readonly number[]) {
  return { type: "histogram", help, buckets } as const;
}

/** Interface 1.3 and contract 16, with HELP and TYPE lines and without flat copies of labelled families (D17). */
export const FAMILIES = {
  service_runs_created_total: counter("Runs created"),
  service_timeline_events_total: counter("Highest sequence number of the timeline"),
  service_timeline_damaged_records_total: counter(
    "Timeline records that failed their checksum and were set aside",
  ),
  service_timeline_append_failures_total: counter("Appends that the disk refused"),

  service_infer_requests_total: {
    ...counter("Provider calls by outcome"),
    labels: { provider: PROVIDERS, status: ["ok", "error"] },
  },
  service_infer_fallback_total: counter("Requests that a later backend answered"),
  service_infer_tokens_total: {
    ...counter("Tokens that providers reported"),
    labels: { provider: PROVIDERS, kind: ["prompt", "completion", "thinking"] },
  },
  service_infer_latency_ms: histogram(
    "Duration of provider calls",
    [10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 15000, 20000, 30000, 60000],
  ),
  service_infer_slo_target_ratio: gauge("Fraction of provider calls that is meant to succeed", 0.99),
  service_infer_error_budget_remaining_ratio: gauge("Part of the allowed failures that is left", 1),

  service_infer_admission_active: gauge("Provider calls that are admitted now"),
  service_infer_admission_waiting: gauge("Provider calls that wait for admission"),
  service_infer_admission_acquired_total: counter("Admissions"),
  service_infer_admission_timeouts_total: {
    ...counter("Waits that ran out, by the limit that was in the way"),
    labels: { limit: ["global", "principal"] },
  },
  service_infer_admission_waiter_rejections_total: counter("Calls refused as the queue was full"),
  service_infer_admission_wait_duration_us_sum: counter("Microseconds spent waiting for admission"),
  service_infer_admission_wait_duration_us_count: counter("Waits measured"),
  service_infer_admission_active_tokens: gauge("Output tokens reserved now"),
  service_infer_admission_active_bytes: gauge("Media bytes reserved now"),
  service_infer_admission_token_limit: gauge("Output tokens that may be reserved"),
  service_infer_admission_byte_limit: gauge("Media bytes that may be reserved"),
  service_infer_admission_deadline_missed_total: counter("Calls that could no longer meet their deadline"),
  service_infer_admission_budget_rejections_total: counter("Calls larger than a whole budget"),
  service_infer_admission_acquired_by_class_total: {
    ...counter("Admissions by latency class"),
    labels: { class: ["urgent_live", "live", "offline"] },
  },

  service_pipeline_rtp_frames_received_total: counter("Access units received over RTP"),
  service_pipeline_frames_decoded_total: counter("Frames decoded, live and recorded"),
  service_pipeline_frames_dropped_total: counter("Frames dropped before analysis"),
  service_pipeline_gate_frames_analyzed_total: counter("Frames that the deterministic filter looked at"),
  service_pipeline_gate_keyframes_selected_total: counter("Frames that the deterministic filter kept"),
  service_pipeline_decode_pending_sanity_violations_total: counter(
    "Decoders that held more frames than they were given",
  ),
  service_pipeline_keyframes_total: counter("Keyframes handed to inference"),
  service_pipeline_keyframes_dropped_total: counter("Keyframes dropped before inference"),
  service_pipeline_sink_keyframes_dropped_total: counter("Keyframes dropped before they were stored"),
  service_pipeline_keyframe_blobs_written_total: counter("Keyframe blobs written"),
  service_pipeline_keyframe_blobs_reused_total: counter("Keyframe blobs that were there already"),
  service_pipeline_keyframe_blob_failures_total: counter("Keyframe blobs that could not be written"),
  service_pipeline_keyframe_blob_bytes_total: counter("Bytes of keyframe blobs"),
  service_pipeline_media_clips_extracted_total: counter("Clips cut out of a source"),
  service_pipeline_media_clip_extraction_failures_total: counter("Clips that could not be cut"),
  service_pipeline_media_clip_bytes_total: counter("Bytes of clips"),
  service_pipeline_media_blobs_written_total: counter("Media blobs written"),
  service_pipeline_media_blobs_reused_total: counter("Media blobs that were there already"),
  service_pipeline_media_blob_failures_total: counter("Media blobs that could not be written"),
  service_pipeline_multimodal_moments_total: counter("Moments recorded"),
  service_pipeline_local_audio_windows_total: counter("Audio windows sent to the sidecar"),
  service_pipeline_local_audio_analysis_failures_total: counter("Audio windows without a result"),
  service_pipeline_local_audio_observations_total: counter("Observations of the audio sidecar"),
  service_pipeline_local_audio_wav_bytes_total: counter("Bytes of WAV sent to the sidecar"),
  service_pipeline_local_audio_duration_ms_total: counter("Milliseconds of audio analyzed"),
  service_pipeline_local_audio_tts_attempts_total: counter("Spoken feedback requested"),
  service_pipeline_local_audio_tts_successes_total: counter("Spoken feedback made"),
  service_pipeline_local_audio_tts_failures_total: counter("Spoken feedback that failed"),
  service_pipeline_local_audio_tts_bytes_total: counter("Bytes of spoken feedback"),
  service_pipeline_webrtc_audio_tracks_total: counter("Audio tracks received"),
  service_pipeline_webrtc_audio_access_units_total: counter("Audio access units received"),
  service_pipeline_webrtc_audio_bytes_total: counter("Bytes of audio received"),
  service_pipeline_webrtc_audio_duration_ms_total: counter("Milliseconds of audio received"),
  service_pipeline_webrtc_audio_receive_errors_total: counter("Audio access units that were unusable"),
  service_pipeline_webrtc_audio_queue_dropped_total: counter("Audio dropped as a queue was full"),
  service_pipeline_restricted_zone_assertions_total: counter("Restricted-zone entries asserted"),
  service_pipeline_restricted_zone_evidence_failures_total: counter(
    "Restricted-zone entries without evidence",
  ),
  service_pipeline_restricted_zone_queue_dropped_total: counter(
    "Restricted-zone entries dropped as the queue was full",
  ),
  service_pipeline_trigger_assertions_total: counter("Trigger events written"),
  service_pipeline_trigger_binary_write_failures_total: counter("Trigger events without evidence"),
  service_pipeline_trigger_queue_dropped_total: counter("Trigger events dropped as the queue was full"),
  service_pipeline_trigger_missing_signal_total: counter("Trigger evaluations that lacked a signal"),
  service_pipeline_trigger_local_outputs_total: counter("Local trigger datagrams sent"),
  service_pipeline_trigger_local_output_failures_total: counter("Local trigger datagrams that failed"),
  service_pipeline_vlm_inferences_total: counter("Live inferences"),
  service_pipeline_novelty_evaluated_total: counter("Keyframes whose novelty was measured"),
  service_pipeline_novelty_reused_total: counter("Descriptions reused"),
  service_pipeline_novelty_forced_refresh_total: counter("Reuses overridden by age, drift or a jump in time"),
  service_pipeline_novelty_embedding_unavailable_total: counter("Keyframes without an embedding"),
  service_pipeline_novelty_shadow_sampled_total: counter("Reuses that were compared with the model"),
  service_pipeline_novelty_shadow_completed_total: counter("Comparisons that finished"),
  service_pipeline_novelty_shadow_changed_total: counter("Comparisons where the model said something else"),
  service_pipeline_loop_detected_total: counter("Loops entered"),
  service_pipeline_sessions_created_total: counter("Live sessions opened"),
  service_pipeline_sessions_removed_total: counter("Live sessions ended"),
  service_pipeline_generations_started_total: counter("Pipeline generations started"),
  service_pipeline_detached_workers_total: counter("Workers left behind after the join deadline"),
  service_pipeline_novelty_reuse_ratio: gauge("Reused of evaluated keyframes"),
  service_pipeline_novelty_shadow_change_ratio: gauge("Changed of completed comparisons"),
  service_pipeline_generations_active: gauge("Pipeline generations that run now"),
  service_pipeline_last_fault_timestamp_seconds: gauge("When a worker last faulted, Unix seconds"),
  service_pipeline_local_audio_sidecar_active: gauge("Requests that the audio sidecar works on"),
  service_pipeline_local_audio_sidecar_queue_depth: gauge("Requests that wait in the audio sidecar"),
  service_pipeline_local_audio_sidecar_capacity: gauge("Requests that the audio sidecar takes at once"),
  service_pipeline_generation_shutdown_total: {
    ...counter("Pipeline generations ended, by outcome"),
    labels: { outcome: ["clean", "faulted", "forced"] },
  },
  service_pipeline_local_audio_failures_total: {
    ...counter("Audio sidecar failures by reason"),
    labels: {
      reason: [
        "decode",
        "timeout",
        "overloaded",
        "model_load",
        "malformed_response",
        "reconnect",
        "inference",
      ],
    },
  },
  service_pipeline_worker_faults_total: {
    ...counter("Worker faults by stage and reason"),
    labels: {
      stage: ["decode", "analysis", "clip_accumulator", "vlm", "event_writer"],
      reason: ["unexpected_exit", "panic", "spawn_failure", "join_deadline"],
    },
  },
  service_pipeline_decode_latency_us: histogram("Decoding one frame", [
    100,
    250,
    500,
    1000,
    2000,
    5000,
    10000,
    50000,
  ]),
  service_pipeline_gate_latency_us: histogram("Filtering one frame", [1, 5, 10, 50, 100, 500, 1000, 5000]),
  service_pipeline_vlm_latency_ms: histogram("Live inference", MEDIA_LATENCY_MS),
  service_pipeline_media_extraction_latency_ms: histogram("Cutting a clip", MEDIA_LATENCY_MS),
  service_pipeline_local_audio_processing_latency_ms: histogram(
    "Audio from extraction to result",
    MEDIA_LATENCY_MS,
  ),
  service_pipeline_local_audio_wav_extraction_latency_ms: histogram("Extracting WAV", MEDIA_LATENCY_MS),
  service_pipeline_local_audio_round_trip_latency_ms: histogram("Audio sidecar round trip", MEDIA_LATENCY_MS),
  service_pipeline_local_audio_decode_latency_ms: histogram(
    "Decoding in the audio sidecar",
    MEDIA_LATENCY_MS,
  ),
  service_pipeline_local_audio_vad_latency_ms: histogram(
    "Voice activity in the audio sidecar",
    MEDIA_LATENCY_MS,
  ),
  service_pipeline_local_audio_classifier_latency_ms: histogram(
    "Sound classes in the audio sidecar",
    MEDIA_LATENCY_MS,
  ),
  service_pipeline_local_audio_asr_latency_ms: histogram(
    "Speech recognition in the audio sidecar",
    MEDIA_LATENCY_MS,
  ),
  service_pipeline_local_audio_tts_latency_ms: histogram(
    "Speech synthesis in the audio sidecar",
    MEDIA_LATENCY_MS,
  ),
  service_pipeline_novelty_embedding_latency_ms: histogram("Embedding one keyframe", [
    1,
    2,
    5,
    10,
    25,
    50,
    100,
    500,
  ]),
  service_pipeline_keyframe_blob_latency_ms: histogram("Storing one keyframe", [
    1,
    5,
    10,
    25,
    50,
    100,
    250,
    1000,
  ]),
  service_pipeline_mirror_emit_latency_ms: histogram("Mirroring one record", [
    1,
    5,
    10,
    25,
    50,
    100,
    250,
    1000,
  ]),
  service_pipeline_local_audio_real_time_factor_milli: histogram(
    "Processing time per audio time, thousandths",
    [50, 100, 250, 500, 750, 1000, 2000, 5000],
  ),

  service_media_capacity_memory_limit_bytes: gauge("Bytes that live generations may reserve"),
  service_media_capacity_memory_reserved_bytes: gauge("Bytes that live generations have reserved"),
  service_media_capacity_worker_thread_limit: gauge("Threads that live generations may reserve"),
  service_media_capacity_worker_threads_reserved: gauge("Threads that live generations have reserved"),
  service_media_capacity_rejections_total: counter("Live generations that found no capacity"),
  service_media_capacity_last_rejection_timestamp_seconds: gauge(
    "When one last found no capacity, Unix seconds",
  ),

  service_sse_subscribers_active: gauge("SSE subscribers that are connected"),
  service_sse_events_total: counter("Events sent over SSE"),
  service_sse_replayed_events_total: counter("Events sent over SSE that were older than the connection"),
  service_sse_notification_lag_total: counter("Times that an SSE subscriber was lapped by the ring"),
  service_sse_output_queue_stalls_total: counter("Times that an SSE subscriber's queue was full"),
  service_sse_commit_to_send_latency_ms: histogram("From append to SSE", [10, 25, 50, 100, 250, 500, 1000]),
  service_webhooks_configured: gauge("Webhooks registered"),
  service_webhook_attempts_total: counter("Webhook requests made"),
  service_webhook_delivered_total: counter("Webhook events delivered"),
  service_webhook_retries_total: counter("Webhook requests repeated"),
  service_webhook_dead_letters_total: counter("Webhook events given up"),
  service_webhook_wake_coalesced_total: counter("Webhook wake-ups that found one pending"),
  service_webhook_notification_lag_total: counter("Times that a webhook worker was lapped by the ring"),
} as const satisfies Readonly<Record<string, Family>>;
