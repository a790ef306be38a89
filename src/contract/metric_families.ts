/** TABLE of metric families: type, help, closed label sets and buckets. Only these can be counted. */

/** One family. The text has every combination of its labels from the start, with the first value. */
export interface Family {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  /** All values of each label, by its name. */
  readonly labels?: Readonly<Record<string, readonly string[]>>;
  /** Upper bounds of a histogram, ascending, without +Inf. */
  readonly buckets?: readonly number[];
  /** Value of a gauge before it is set; 0 when left out. */
  readonly initialValue?: number;
}

const PROVIDERS = ["vllm", "sglang", "gemini", "mlx"] as const;
const RETAINED = ["runs", "events", "blobs", "uploads", "recordings"] as const;
const DISK_PLACES = ["data_dir", "upload_root"] as const;
const MEDIA_LATENCY_MS = [50, 100, 250, 500, 1000, 2500, 5000, 10000] as const;

function counter(help: string) {
  return { type: "counter", help } as const;
}

function gauge(help: string, initialValue = 0) {
  return { type: "gauge", help, initialValue } as const;
}

function histogram(help: string, buckets: readonly number[]) {
  return { type: "histogram", help, buckets } as const;
}

/** Every family of the service. See docs/deployment/monitoring.md#metrics. */
export const FAMILIES = {
  service_runs_created_total: counter("Runs created"),
  service_timeline_events_total: counter("Highest sequence number of the timeline"),
  service_timeline_damaged_records_total: counter(
    "Timeline records with a wrong checksum, which were skipped",
  ),
  service_timeline_append_failures_total: counter("Writes to the timeline that failed on the disk"),
  service_retention_removed_total: {
    ...counter("What retention has decided to remove, counted before it goes"),
    labels: { what: RETAINED },
  },
  service_retention_removed_bytes_total: {
    ...counter("Bytes of what retention has decided to remove, counted before they go"),
    labels: { what: RETAINED },
  },
  service_retention_missing_bytes: gauge(
    "Bytes below the free room that SERVICE_RETENTION_FREE_BYTES asks for, after the last look; 0 where it is there",
  ),
  service_retention_failures_total: counter(
    "Passes of retention that failed, and files that could not be removed",
  ),
  service_storage_quota_refusals_total: counter(
    "Writes that were refused as their principal stores too much",
  ),

  service_disk_free_bytes: {
    ...gauge(
      "Bytes that the service may still write to the disk of a folder; NaN where the system does not tell",
    ),
    labels: { place: DISK_PLACES },
  },
  service_disk_total_bytes: {
    ...gauge("Bytes of the disk of a folder; NaN where the system does not tell"),
    labels: { place: DISK_PLACES },
  },

  service_idempotency_keys: gauge("Idempotency keys that are kept"),
  service_idempotency_replays_total: counter("Requests that got the kept answer to their idempotency key"),
  service_http_connections: gauge(
    "Connections to the service that are open now, also those that have sent no request",
  ),
  service_http_connections_total: counter("Connections that have sent a request, and those of HTTP/3"),

  service_log_lines_dropped_total: counter(
    "Log lines that were dropped as nobody read standard output or standard error",
  ),

  service_infer_requests_total: {
    ...counter("Calls of model backends by outcome"),
    labels: { provider: PROVIDERS, status: ["ok", "error"] },
  },
  service_infer_fallback_total: {
    ...counter("Inferences that another backend than the first answered, by the one that did"),
    labels: { provider: PROVIDERS },
  },
  service_infer_tokens_total: {
    ...counter("Tokens that model backends reported"),
    labels: { provider: PROVIDERS, kind: ["prompt", "completion", "thinking"] },
  },
  service_infer_latency_ms: {
    ...histogram(
      "Duration of calls of model backends",
      [10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 15000, 20000, 30000, 60000],
    ),
    labels: { provider: PROVIDERS },
  },
  service_infer_slo_target_ratio: {
    ...gauge("Target share of successful calls of model backends", 0.99),
    labels: { provider: PROVIDERS },
  },
  service_infer_error_budget_remaining_ratio: {
    ...gauge("Share of the allowed failed calls that is not used up", 1),
    labels: { provider: PROVIDERS },
  },

  service_infer_admission_active: gauge("Model calls that are under way now"),
  service_infer_admission_waiting: gauge("Model calls that wait for admission now"),
  service_infer_admission_acquired_total: counter("Model calls that were admitted"),
  service_infer_admission_timeouts_total: {
    ...counter("Model calls whose wait for admission timed out, by the limit that they waited for"),
    labels: { limit: ["global", "principal"] },
  },
  service_infer_admission_waiter_rejections_total: counter("Model calls refused because the queue was full"),
  service_infer_admission_wait_duration_us_sum: counter("Microseconds spent waiting for admission"),
  service_infer_admission_wait_duration_us_count: counter(
    "Number of waits in service_infer_admission_wait_duration_us_sum",
  ),
  service_infer_admission_active_tokens: gauge("Output tokens that model calls have reserved now"),
  service_infer_admission_active_bytes: gauge("Media bytes that model calls have reserved now"),
  service_infer_admission_active_limit: gauge("Model calls that may be under way together"),
  service_infer_admission_waiting_limit: gauge("Model calls that may wait for admission together"),
  service_infer_admission_token_limit: gauge("Output tokens that model calls may reserve together"),
  service_infer_admission_byte_limit: gauge("Media bytes that model calls may reserve together"),
  service_infer_admission_deadline_missed_total: counter(
    "Model calls refused because they could not end before their deadline",
  ),
  service_infer_admission_budget_rejections_total: counter(
    "Model calls refused because they need more than a whole budget",
  ),
  service_infer_admission_acquired_by_class_total: {
    ...counter("Model calls that were admitted, by latency class"),
    labels: { class: ["urgent_live", "live", "offline"] },
  },

  service_pipeline_rtp_frames_received_total: counter("Access units received over RTP"),
  service_pipeline_frames_decoded_total: counter("Frames decoded, live and recorded"),
  service_pipeline_frames_dropped_total: counter("Frames dropped before analysis"),
  service_pipeline_gate_frames_analyzed_total: counter("Frames that the deterministic filter analyzed"),
  service_pipeline_gate_keyframes_selected_total: counter("Frames that the deterministic filter kept"),
  service_pipeline_decode_pending_sanity_violations_total: counter(
    "Times that a decoder reported more pending frames than it had received",
  ),
  service_pipeline_keyframes_total: counter("Keyframes passed to inference"),
  service_pipeline_keyframes_dropped_total: counter("Keyframes dropped before inference"),
  service_pipeline_enrichments_total: {
    ...counter("Events `event_enriched` of live sessions, by what they tell"),
    labels: {
      outcome: [
        "described",
        "deadline",
        "overloaded",
        "model_failed",
        "token_cap",
        "no_model",
        "session_ended",
        "service_restarted",
      ],
    },
  },
  service_pipeline_keyframes_undescribed_total: {
    ...counter("Keyframes and clips of live sessions that got no new description, by reason"),
    labels: {
      reason: [
        "loop",
        "queue_full",
        "not_encoded",
        "cap",
        "reused",
        "not_served",
        "provider_failed",
        "repeated",
        "not_stored",
        "session_ended",
      ],
    },
  },
  service_pipeline_sink_keyframes_dropped_total: counter("Keyframes dropped before they were stored"),
  service_pipeline_keyframe_blobs_written_total: counter("Keyframe blobs written"),
  service_pipeline_keyframe_blobs_reused_total: counter("Keyframe blobs that had been stored before"),
  service_pipeline_keyframe_blob_failures_total: counter("Keyframe blobs that could not be written"),
  service_pipeline_keyframe_blob_bytes_total: counter("Bytes of keyframe blobs written or reused"),
  service_pipeline_media_clips_extracted_total: counter("Clips extracted from sources"),
  service_pipeline_media_clip_extraction_failures_total: counter("Clips that could not be extracted"),
  service_pipeline_media_clip_bytes_total: counter("Bytes of extracted clips"),
  service_pipeline_media_blobs_written_total: counter("Media blobs written"),
  service_pipeline_media_blobs_reused_total: counter("Media blobs that had been stored before"),
  service_pipeline_media_blob_failures_total: counter("Media blobs that could not be written"),
  service_pipeline_multimodal_moments_total: counter("Moments written to the timeline"),
  service_pipeline_local_audio_windows_total: counter("Audio windows sent to the audio sidecar"),
  service_pipeline_local_audio_analysis_failures_total: counter("Audio windows whose analysis failed"),
  service_pipeline_local_audio_observations_total: counter("Observations in answers of the audio sidecar"),
  service_pipeline_local_audio_wav_bytes_total: counter("Bytes of WAV sent to the audio sidecar"),
  service_pipeline_local_audio_duration_ms_total: counter(
    "Milliseconds of audio analyzed by the audio sidecar",
  ),
  service_pipeline_local_audio_tts_attempts_total: counter("Requests for spoken feedback"),
  service_pipeline_local_audio_tts_successes_total: counter("Requests for spoken feedback that succeeded"),
  service_pipeline_local_audio_tts_failures_total: counter("Requests for spoken feedback that failed"),
  service_pipeline_local_audio_tts_bytes_total: counter("Bytes of spoken feedback"),
  service_pipeline_webrtc_audio_tracks_total: counter("Audio tracks of live sessions"),
  service_pipeline_webrtc_audio_access_units_total: counter("Audio access units received"),
  service_pipeline_webrtc_audio_bytes_total: counter("Bytes of audio received"),
  service_pipeline_webrtc_audio_duration_ms_total: counter("Milliseconds of audio received"),
  service_pipeline_webrtc_audio_receive_errors_total: counter("Audio access units that could not be used"),
  service_pipeline_webrtc_audio_queue_dropped_total: counter(
    "Audio windows and access units dropped because a queue was full",
  ),
  service_pipeline_recordings_stored_total: counter("Evidence clips that were stored"),
  service_pipeline_recordings_lost_total: counter("Evidence clips that could not be made or stored"),
  service_recording_segments_stored_total: counter("Segments of continuous recordings that were stored"),
  service_recording_segments_lost_total: counter(
    "Segments of continuous recordings that could not be made or stored, or ended as no key frame came in time or a picture was too long",
  ),
  service_recording_bytes_total: counter("Bytes of the segments that were stored"),
  service_pipeline_restricted_zone_assertions_total: counter("Restricted-zone events written"),
  service_pipeline_restricted_zone_evidence_failures_total: counter(
    "Restricted-zone events that were not written, as their evidence could not be stored",
  ),
  service_pipeline_restricted_zone_queue_dropped_total: counter(
    "Restricted-zone events dropped because the queue was full",
  ),
  service_pipeline_trigger_assertions_total: counter("Trigger events written"),
  service_pipeline_trigger_binary_write_failures_total: counter(
    "Trigger events that were not written, as their evidence could not be stored",
  ),
  service_pipeline_trigger_queue_dropped_total: counter("Trigger events dropped because the queue was full"),
  service_pipeline_trigger_missing_signal_total: counter("Trigger evaluations in which a signal was missing"),
  service_pipeline_trigger_local_outputs_total: counter("Datagrams sent for local trigger actions"),
  service_pipeline_trigger_local_output_failures_total: counter(
    "Datagrams for local trigger actions that could not be sent",
  ),
  service_pipeline_vlm_inferences_total: counter("Inferences for live sessions"),
  service_pipeline_novelty_evaluated_total: counter("Keyframes whose novelty was measured"),
  service_pipeline_novelty_reused_total: counter("Descriptions reused"),
  service_pipeline_novelty_forced_refresh_total: counter(
    "Descriptions refreshed although the embedding was similar: too old, too much drift, or the time went back",
  ),
  service_pipeline_novelty_embedding_unavailable_total: counter("Keyframes without an embedding"),
  service_pipeline_novelty_shadow_sampled_total: counter(
    "Reuses for which the model was asked for comparison",
  ),
  service_pipeline_novelty_shadow_completed_total: counter("Comparisons that were completed"),
  service_pipeline_novelty_shadow_changed_total: counter(
    "Completed comparisons in which the description had changed",
  ),
  service_pipeline_loop_detected_total: counter("Times that a live stream began to loop"),
  service_pipeline_live_markers_dropped_total: counter(
    "Markers of live sessions beyond the limit for a minute",
  ),
  service_pipeline_decoder_restarts_total: counter("Restarts of decoders of live sessions"),
  service_pipeline_sessions_created_total: counter("Live sessions opened"),
  service_pipeline_sessions_removed_total: counter("Live sessions ended"),
  service_pipeline_generations_started_total: counter("Generations of live sessions started"),
  service_pipeline_detached_workers_total: counter("Workers that did not end within their deadline"),
  service_pipeline_novelty_reuse_ratio: gauge("Share of evaluated keyframes whose description was reused"),
  service_pipeline_novelty_shadow_change_ratio: gauge(
    "Share of completed comparisons in which the description had changed",
  ),
  service_pipeline_generations_active: gauge("Generations of live sessions that are running now"),
  service_live_view_viewers: gauge("Viewers of the live view of all sessions now"),
  service_live_view_fragments_total: counter("Fragments that were made for the live view"),
  service_live_view_fragments_dropped_total: {
    ...counter(
      "Fragments of the live view that were dropped: before they left the Worker, or for one slow viewer",
    ),
    labels: { queue: ["worker", "viewer"] },
  },
  service_pipeline_pulled_sources: {
    ...gauge("Cameras and streams of open live sessions, by whether they give frames"),
    labels: { state: ["receiving", "lost"] },
  },
  service_pipeline_pulled_source_lost_seconds: gauge(
    "Seconds since the camera or stream that has been lost longest was lost; 0 where none is",
  ),
  service_sources: {
    ...gauge("Named sources, by state; one that nobody always watches is disabled"),
    labels: { state: ["connecting", "live", "gap", "disabled", "failed"] },
  },
  service_sources_armed: {
    ...gauge("Always-on cameras, by whether they are armed"),
    labels: { state: ["armed", "disarmed"] },
  },
  service_sources_down_seconds: gauge(
    "Seconds for which the always-on camera that is down longest has given no frames; 0 where none is",
  ),
  service_rtsp_datagrams_total: {
    ...counter(
      "UDP packets of cameras: passed on, lost on the way, too late or twice, dropped here, from elsewhere",
    ),
    labels: { outcome: ["passed", "lost", "late", "dropped", "foreign"] },
  },
  service_sources_file_faulty: gauge(
    "1 where the file of named sources could not be used when it was read last",
  ),
  service_pipeline_last_fault_timestamp_seconds: gauge("Time of the last worker fault, Unix seconds"),
  service_pipeline_local_audio_sidecar_active: gauge(
    "Requests in work in the audio sidecar, by its last answer",
  ),
  service_pipeline_local_audio_sidecar_queue_depth: gauge(
    "Requests that wait in the audio sidecar, by its last answer",
  ),
  service_pipeline_local_audio_sidecar_capacity: gauge(
    "Requests that the audio sidecar works on at once, by its last answer",
  ),
  service_pipeline_generation_shutdown_total: {
    ...counter("Generations of live sessions ended, by outcome"),
    labels: { outcome: ["clean", "faulted", "forced"] },
  },
  service_pipeline_local_audio_failures_total: {
    ...counter("Failures of the audio sidecar by reason"),
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
      stage: ["decode", "analysis", "clip_accumulator", "vlm", "event_writer", "audio"],
      reason: ["unexpected_exit", "panic", "spawn_failure", "join_deadline"],
    },
  },
  service_pipeline_decode_latency_us: histogram("Time to decode one frame", [
    100,
    250,
    500,
    1000,
    2000,
    5000,
    10000,
    50000,
  ]),
  service_pipeline_gate_latency_us: histogram("Time to filter one frame", [
    1,
    5,
    10,
    50,
    100,
    500,
    1000,
    5000,
  ]),
  service_pipeline_vlm_latency_ms: histogram("Duration of an inference for a live session", MEDIA_LATENCY_MS),
  service_pipeline_media_extraction_latency_ms: histogram("Time to extract a clip", MEDIA_LATENCY_MS),
  service_pipeline_local_audio_processing_latency_ms: histogram(
    "Time from the extraction of an audio window to its result",
    MEDIA_LATENCY_MS,
  ),
  service_pipeline_local_audio_wav_extraction_latency_ms: histogram(
    "Time to extract a WAV",
    MEDIA_LATENCY_MS,
  ),
  service_pipeline_local_audio_round_trip_latency_ms: histogram(
    "Round trip of a request to the audio sidecar",
    MEDIA_LATENCY_MS,
  ),
  service_pipeline_local_audio_decode_latency_ms: histogram(
    "Time for decoding in the audio sidecar",
    MEDIA_LATENCY_MS,
  ),
  service_pipeline_local_audio_vad_latency_ms: histogram(
    "Time for voice activity detection in the audio sidecar",
    MEDIA_LATENCY_MS,
  ),
  service_pipeline_local_audio_classifier_latency_ms: histogram(
    "Time for sound classification in the audio sidecar",
    MEDIA_LATENCY_MS,
  ),
  service_pipeline_local_audio_asr_latency_ms: histogram(
    "Time for speech recognition in the audio sidecar",
    MEDIA_LATENCY_MS,
  ),
  service_pipeline_local_audio_tts_latency_ms: histogram(
    "Time for speech synthesis in the audio sidecar",
    MEDIA_LATENCY_MS,
  ),
  service_pipeline_novelty_embedding_latency_ms: histogram("Time to embed one keyframe", [
    1,
    2,
    5,
    10,
    25,
    50,
    100,
    500,
  ]),
  service_pipeline_keyframe_blob_latency_ms: histogram("Time to store one keyframe", [
    1,
    5,
    10,
    25,
    50,
    100,
    250,
    1000,
  ]),
  service_pipeline_mirror_emit_latency_ms: histogram(
    "Time to write one row to the mirror database: that of its transaction over its rows",
    [
      1,
      5,
      10,
      25,
      50,
      100,
      250,
      1000,
    ],
  ),
  service_pipeline_local_audio_real_time_factor_milli: histogram(
    "Processing time divided by the duration of the audio, in thousandths",
    [50, 100, 250, 500, 750, 1000, 2000, 5000],
  ),

  service_media_capacity_memory_limit_bytes: gauge("Bytes that live sessions may reserve together"),
  service_media_capacity_memory_reserved_bytes: gauge("Bytes that live sessions have reserved now"),
  service_media_capacity_worker_thread_limit: gauge("Threads that live sessions may reserve together"),
  service_media_capacity_worker_threads_reserved: gauge("Threads that live sessions have reserved now"),
  service_media_capacity_rejections_total: counter("Live sessions refused because there was no capacity"),
  service_media_capacity_last_rejection_timestamp_seconds: gauge(
    "Time of the last refusal because there was no capacity, Unix seconds",
  ),

  service_decoder_cage: {
    ...gauge("1 for the level at which ffmpeg and ffprobe are caged, 0 for the others"),
    labels: { level: ["bubblewrap", "unshare", "limits", "off"] },
  },
  service_trace_spans_exported_total: counter("Spans that the trace collector has received"),
  service_trace_spans_dropped_total: counter(
    "Spans dropped, or not made, as too many waited, and those that the trace collector did not take",
  ),
  service_mirror_up: gauge("1 while the mirror database is connected, 0 while it is away or there is none"),
  service_mirror_lag_seconds: gauge(
    "How long the oldest event that is missing in the mirror database has waited, 0 when none is",
  ),
  service_mirror_rows_total: counter("Rows written to the mirror database"),
  service_mirror_rows_refused_total: counter(
    "Rows that the mirror database refuses for what is in them, and that are left out",
  ),
  service_mirror_failures_total: counter(
    "Connections to the mirror database that failed, ended, or did not write in time",
  ),
  service_sse_subscribers_active: gauge("Subscribers of event streams that are connected now"),
  service_sse_events_total: counter("Events sent to subscribers of event streams"),
  service_sse_replayed_events_total: counter(
    "Events sent to subscribers that are older than their connection",
  ),
  service_sse_notification_lag_total: counter(
    "Times that a subscriber fell behind the ring of notifications and read from the log",
  ),
  service_sse_output_queue_stalls_total: counter("Times that the output queue of a subscriber was full"),
  service_sse_commit_to_send_latency_ms: histogram(
    "Time from the append of an event to its sending to a subscriber",
    [10, 25, 50, 100, 250, 500, 1000],
  ),
  service_webhooks_configured: gauge("Registered webhooks"),
  service_webhook_oldest_waiting_seconds: gauge(
    "Age of the oldest event that a webhook has not delivered or given up; 0 where none waits",
  ),
  service_webhook_attempts_total: counter("Requests to webhooks, retries included"),
  service_webhook_delivered_total: counter("Events delivered to webhooks"),
  service_webhook_retries_total: counter("Requests to webhooks that were retries"),
  service_webhook_dead_letters_total: counter("Events for webhooks that were given up"),
  service_webhook_filtered_total: counter("Events of the kinds of a webhook that its filter left out"),
  service_webhook_withheld_total: counter("Events for webhooks that their cooldown withheld"),
  service_webhook_wake_coalesced_total: counter("Notifications of webhook workers merged with a pending one"),
  service_webhook_notification_lag_total: counter(
    "Times that a webhook worker fell behind the ring of notifications and read from the log",
  ),
} as const satisfies Readonly<Record<string, Family>>;
