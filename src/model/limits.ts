/** Every number that bounds what a caller may send or the service may hold; each one stands here and nowhere else. */

/** Both ends belong to the range. */
export interface Range {
  readonly minimum: number;
  readonly maximum: number;
}

/**
 * Interface part 8, completed by the contract. Names end with their unit; a name without one counts things.
 * Limits that an operator may change are rows of the config table instead (`base/config.ts`).
 */
export const LIMITS = deepFrozen({
  /** Contract 1.1: what an event belongs to when its caller named no stream. */
  defaultStreamId: "stream-0",

  /** Interface 4.3 and contract 2.4: sampled frames a second. */
  sampling: {
    fps: range(0.2, 120),
    /** Contract 2.4: what an adaptive policy assumes of a source that does not say its rate, by route. */
    unknownSourceFpsIngest: 2,
    unknownSourceFpsReason: 24,
    /** Contract 2.4: `fixed_fps` of a reason call that names the policy only. */
    fixedFpsReason: 1,
  },

  /** Interface 4.3, contract 2. */
  ingest: {
    maxFrames: range(1, 500_000),
    maxFramesDefault: 512,
    /** Contract 2.2: a remote file, as declared and as received. */
    prefetchBytesMax: 256 * 2 ** 20,
    prefetchTimeoutMs: 30_000,
    prefetchRedirectsMax: 5,
    /** Contract 2.2: how much of a file ffprobe may look at before it says what it is. */
    probeBytes: 2 ** 20,
    probeAnalyzeMs: 5_000,
    probeTimeoutMs: 10_000,
  },

  /** Interface 4.3, contract 4.3 and 5. */
  analyze: {
    framesMax: 4096,
    windowSize: range(2, 256),
    windowSizeDefault: 16,
    segmentMs: range(50, 60_000),
    segmentMsDefault: 250,
  },

  /** Interface 2.3, contract 4.2. */
  marker: {
    exactConfidence: 0.7,
    correctionWindowFrames: 3,
  },

  /** Interface 4.3, contract 6.1. */
  reason: {
    maxFrames: range(1, 500_000),
    maxFramesDefault: 120_000,
    chunkSize: range(5, 500),
    chunkSizeDefault: 25,
    windowSize: range(2, 256),
    windowSizeDefault: 16,
    segmentMsMin: 1,
    segmentMsDefault: 250,
    framesPerChunk: range(1, 4),
    framesPerChunkDefault: 2,
    frameEdgePixels: range(64, 4096),
    semanticTimeoutMs: range(100, 120_000),
    semanticTimeoutMsFrames: 1_500,
    semanticTimeoutMsNative: 30_000,
    promptBytesMax: 4096,
    outputSchemaBytesMax: 65_536,
    /** Arrays and objects: the time to compile grows with their square, to a fifth of a second for these. */
    outputSchemaContainersMax: 1_000,
    /** Names that every event of a call repeats: stream_id, trace_id, index_name, the two pass models. */
    nameBytesMax: 256,
    secondPassThreshold: 0.7,
    clipSeconds: 60,
    clipSecondsDefault: 0.5,
    vlmConcurrency: range(1, 64),
    vlmConcurrencyDefault: 4,
    vlmConcurrencyAudioVideo: 2,
  },

  /** Interface 4.3, contract 6: native media windows. */
  mediaWindow: {
    lengthMs: range(100, 60_000),
    lengthMsLocalAudio: 20_000,
    lengthMsDefault: 8_000,
    lengthMsFrames: 500,
    videoStreams: 1,
    audioStreamsMax: 8,
    audioSampleRateHz: 48_000,
    momentsMax: 32,
    timestampResolutionMs: 1_000,
  },

  /** Interface 4.3, contract 6.1 and 12. */
  localAudio: {
    confidence: range(0, 1),
    confidenceDefault: 0.35,
    events: range(1, 64),
    eventsDefault: 32,
    liveWindowMs: 4_000,
    liveRemainderMsMin: 250,
    wavBytesMax: 4 * 2 ** 20,
    clipBytesMax: 64 * 2 ** 20,
  },

  /** Interface 4.6, contract 7.1. Prompts are counted in UTF-8 bytes after trimming. */
  infer: {
    promptBytes: range(1, 32_768),
    maxTokens: range(1, 4096),
    maxTokensDefault: 256,
    temperature: range(0, 2),
    temperatureDefault: 0,
    timeoutMs: range(1, 120_000),
    timeoutMsDefault: 20_000,
    batchRequests: range(1, 256),
    batchParallel: range(1, 64),
    batchParallelDefault: 8,
  },

  /** Contract 1.4 and 7.2 to 7.5: model backends. */
  backend: {
    priorityDefault: 100,
    probeMs: 1_000,
    geminiProbeMs: 2_000,
    geminiFilePollMs: 500,
    geminiFileDeleteMs: 2_000,
    /** What a model that thinks may take on top of what was asked for. */
    geminiThinkingTokens: 2_048,
    /** The latency alarm: of so many calls or more, fewer than this share ended in time. */
    alarmCallsMin: 10,
    alarmLatencyMs: 5_000,
    alarmShareInTime: 0.95,
  },

  /** Interface 4.4. The query is counted in UTF-8 bytes after trimming. */
  search: {
    queryBytes: range(1, 1024),
    hits: range(1, 500),
    hitsDefault: 50,
  },

  /** Interface 2.6, contract 8.1. */
  feedback: {
    rating: range(0, 10),
    categoryBytes: range(1, 64),
    textBytesMax: 65_536,
  },

  /** Interface 4.5, contract 8.3 and D8. */
  webhook: {
    eventKindsMax: 32,
    kindBytes: range(1, 96),
    urlBytesMax: 2048,
    resolveTimeoutMs: 3_000,
    hooksMax: 64,
    retries: 3,
    attemptTimeoutMs: 3_000,
    bodyBytesMax: 2 ** 20,
    errorCharactersMax: 256,
    workerRestartMs: 2_000,
    recentDeadLettersMax: 16,
    closeDeadlineMs: 5_000,
  },

  /** Contract 8.2. */
  sse: {
    keepaliveMs: 15_000,
    ringEvents: 1024,
    queueEvents: 16,
    replayBatchEvents: 256,
    kindBytes: range(1, 96),
  },

  /** Interface 4.7, contract 9.3. */
  trigger: {
    sourceBytesMax: 64 * 2 ** 10,
    samples: range(1, 10_000),
    instructions: range(1, 64),
    stackValuesMax: 16,
    stateSlotsMax: 16,
    actionsMax: 8,
    identifierBytes: range(1, 128),
    sustainFrames: range(1, 10_000),
    cooldownMsMax: 86_400_000,
    captureMsMax: 60_000,
  },

  /** Contract 10. */
  policy: {
    promptBytesMax: 32_768,
    outputSchemaBytesMax: 65_536,
    zoneIdentifierBytes: range(1, 128),
    zoneFrames: range(1, 300),
    acknowledgementMs: 2_000,
    /** Of one run: each request looks at all of them. */
    revisionsMax: 1_024,
    /** Intervals that one replay over signals reports; the count says how many there were. */
    replayIntervalsMax: 1_024,
  },

  /** Interface 4.11, contract 11. */
  whip: {
    promptAcknowledgementMs: 2_000,
    attachHeaderBytesMax: 8192,
    sessionsMax: 100,
    firstCandidateMs: 3_000,
    rememberedSessionsMax: 1024,
    rememberedSessionsMs: 600_000,
  },

  /** Contract 11.4: what one live session may hold, and how much a stage may fall behind. */
  live: {
    videoUnitsQueued: 128,
    videoUnitBytesMax: 2 * 2 ** 20,
    audioUnitsQueued: 256,
    audioUnitBytesMax: 64 * 2 ** 10,
    audioWindowsQueued: 2,
    decodedFramesQueuedClip: 64,
    decodedFramesQueuedKeyframe: 32,
    eventsQueued: 512,
    eventsWithImageQueued: 128,
    evidenceQueued: 8,
    commandsQueued: 8,
    jpegBytesMax: 2 * 2 ** 20,
    jpegQuality: 75,
    clipFramesMax: 64,
  },

  /** Contract 11.2, `clip_mode`. */
  liveClip: {
    targetFps: range(1, 30),
    targetFpsDefault: 6,
    clipSeconds: range(0.1, 60),
    clipSecondsDefault: 0.5,
    delaySeconds: range(0, 60),
    delaySecondsDefault: 0.5,
  },

  /** Contract 12.1 and 12.2. */
  sidecar: {
    embeddingJpegBytesMax: 10 * 2 ** 20,
    embeddingDimensions: 768,
    speechTextBytesMax: 16 * 2 ** 10,
    metadataBytesMax: 512 * 2 ** 10,
    audioBytesMax: 16 * 2 ** 20,
    modelsMax: 16,
    observationsMax: 64,
    observationEndMsMax: 60_000,
    labelBytesMax: 128,
    modelBytesMax: 256,
    transcriptBytesMax: 16 * 2 ** 10,
    languageBytesMax: 64,
  },

  /** D4 and contract 13.5: request bodies. */
  body: {
    jsonBytes: 4 * 2 ** 20,
    uploadBytes: 200 * 2 ** 20,
    /** A JSON body that has not arrived by then is given up. */
    jsonReadMs: 30_000,
    urlCharacters: 8192,
  },

  /** Contract 13.6. */
  upload: {
    probeTimeoutMs: 10_000,
    /** Of the stored name, the owner's prefix included: what file systems take. */
    filenameBytesMax: 255,
    concurrentMax: 16,
    waitingMax: 64,
    waitMs: 30_000,
    /** The longest pause between two pieces of a body, and the longest that the whole may take. */
    idleMs: 30_000,
    receiveMs: 3_600_000,
    partHeaderBytesMax: 16 * 2 ** 10,
  },

  /** Interface 4.10. */
  blob: {
    /** References of runs that are remembered with their place in the timeline. */
    referencesRemembered: 262_144,
  },

  /** Contract 13.2. */
  cors: {
    preflightMaxAgeSeconds: 600,
  },

  /** Contract 1.1, 1.2, 1.4 and 14. */
  run: {
    identifierHexDigits: [16, 32],
    modelIdBytesMax: 64,
    deletedRunsKept: 4096,
  },
});

function range(minimum: number, maximum: number): Range {
  return { minimum, maximum };
}

function deepFrozen<const T extends object>(value: T): T {
  for (const part of Object.values(value)) {
    if (typeof part === "object" && part !== null) deepFrozen(part);
  }
  return Object.freeze(value);
}
