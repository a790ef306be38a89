/** TABLE of the public limits: every bound that a caller, an operator or a reader of the docs can notice,
 * each one once.
 */

import { OUTPUT_TOKENS_PER_SECOND_MAX, WEBHOOK_RETRIES } from "./setting_parsers.ts";

/** A range of numbers; both ends belong to it. */
export interface Range {
  readonly minimum: number;
  readonly maximum: number;
}

/**
 * All limits. Names end with their unit; a name without one counts things. Limits that an operator may change
 * are rows of the table of settings instead (`contract/settings.ts`). A bound that only protects one module
 * (the size of a buffer, the wait for a child process) is a constant of that module. See
 * docs/reference/limits.md.
 */
export const LIMITS = deepFrozen({
  /** Sampled frames a second. */
  sampling: {
    fps: range(0.2, 120),
    /** The rate that an adaptive policy assumes for a source that does not state its own, by route. */
    unknownSourceFpsIngest: 2,
    unknownSourceFpsReason: 24,
    /** The rate of a reason call that names the policy `fixed_fps` but gives no rate. */
    fixedFpsReason: 1,
  },

  /**
   * Names that the events and rows of a call repeat: stream_id, trace_id, index_name, x-tenant-id, models of
   * passes.
   */
  name: {
    bytesMax: 256,
  },

  ingest: {
    maxFrames: range(1, 500_000),
    maxFramesDefault: 512,
    /** The `source_uri` in UTF-8, for every kind of source; repeated in events and in the list of runs. */
    sourceUriBytesMax: 4096,
    /** Size of a remote file: the declared one and the received one. */
    prefetchBytesMax: 256 * 2 ** 20,
    prefetchTimeoutMs: 30_000,
    prefetchRedirectsMax: 5,
    /** How much of a file ffprobe may read before it names the format. */
    probeBytes: 2 ** 20,
    probeAnalyzeMs: 5_000,
    probeTimeoutMs: 10_000,
  },

  /**
   * What a file or a stream may have, whatever it is read for. More is either no film, or one that is made to
   * fill the memory.
   */
  media: {
    /**
     * Pixels of one picture: the most that levels 6 to 6.2 of H.264, H.265 and AV1 allow. Films of 8192x4320
     * have less.
     */
    picturePixelsMax: 139_264 * 256,
    /**
     * Streams of all kinds: pictures, sound, subtitles, covers, fonts. Each takes memory before the first
     * picture is decoded.
     */
    streamsMax: 128,
    /** How long a decode waits for memory, while other decodes have it. */
    memoryWaitMs: 30_000,
  },

  /** Named sources, and cameras that are always watched. */
  sources: {
    namedMax: 256,
    fileBytesMax: 2 ** 20,
    /** After how long a camera that is always watched gets a new run. */
    rolloverMs: range(60_000, 7 * 86_400_000),
    rolloverMsDefault: 86_400_000,
    /** Webhooks of all sources of the file together. Those of callers are counted apart. */
    webhooksMax: 64,
    /** Entries of the field `armed` of a source. */
    armedTimesMax: 32,
    /** The field `for_seconds` of arming and disarming. */
    armedSeconds: range(1, 7 * 86_400),
    /**
     * Parts that are no JPEGs, which a camera may send between two JPEGs, such as empty ones and texts; they
     * are left out.
     */
    otherPartsMax: 16,
    /** The shortest JPEG of a camera: shorter ones are none. */
    jpegBytesMin: 64,
    /**
     * What a source may do each second where it does nothing else. One that does several of these has less of
     * each, and one that wants more is slowed down.
     */
    budget: {
      bytesPerSecond: 64 * 2 ** 20,
      /** Bytes after unpacking, of what comes compressed. */
      unpackedBytesPerSecond: 100_000_000,
      /** Pieces as the network brings them: packets of a slow server, many at once of a fast one. */
      piecesPerSecond: 10_000,
      /** JPEGs of a camera that sends them one by one. */
      picturesPerSecond: 1_000,
      /** Datagrams of a camera over UDP. */
      datagramsPerSecond: 20_000,
      /** Requests for playlists and their parts. */
      requestsPerSecond: 100,
      /** Addresses in playlists. */
      addressesPerSecond: 20_000,
    },
  },

  analyze: {
    framesMax: 4096,
    windowSize: range(2, 256),
    windowSizeDefault: 16,
    segmentMs: range(50, 60_000),
    segmentMsDefault: 250,
  },

  /** Signals of a decode in bins. */
  signals: {
    points: range(1, 4096),
    pointsDefault: 512,
  },

  /** What the detectors of decoded frames find. */
  detection: {
    /** Ranges of one decode, and times of cuts beside its rows; of more, those that begin first are kept. */
    rangesMax: 10_000,
  },

  marker: {
    exactConfidence: 0.7,
    correctionWindowFrames: 3,
  },

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
    semanticTimeoutMsDefault: 60_000,
    promptBytesMax: 4096,
    outputSchemaBytesMax: 65_536,
    /**
     * Arrays and objects in a schema. The time to compile one grows with their square: a fifth of a second
     * for this many.
     */
    outputSchemaContainersMax: 1_000,
    secondPassThreshold: 0.7,
    clipSeconds: 60,
    clipSecondsDefault: 0.5,
    vlmConcurrency: range(1, 64),
    vlmConcurrencyDefault: 4,
    vlmConcurrencyAudioVideo: 2,
  },

  /** The window of media around a chunk that native_video and audio_video send to the model. */
  mediaWindow: {
    lengthMs: range(100, 60_000),
    lengthMsLocalAudio: 20_000,
    lengthMsDefault: 8_000,
    lengthMsFrames: 500,
    audioStreamsMax: 8,
    audioSampleRateHz: 48_000,
    momentsMax: 32,
    timestampResolutionMs: 1_000,
  },

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

  /** Direct inference. Prompts are counted in UTF-8 bytes after trimming. */
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

  /** Model backends. */
  backend: {
    priorityDefault: 100,
    probeMs: 1_000,
    geminiProbeMs: 2_000,
    /** How long a server's list of models is used before it is asked again, and how long after a failure. */
    modelsValidMs: 60_000,
    modelsRetryMs: 5_000,
    /** Ids that are read of one server's list, and ids that a message names. */
    modelsMax: 1_000,
    modelsNamed: 5,
    geminiFilePollMs: 500,
    geminiFileDeleteMs: 2_000,
    /** Output tokens that a model with a thinking phase gets in addition to the requested ones. */
    geminiThinkingTokens: 2_048,
    /**
     * The latency alarm is raised when, of at least `alarmCallsMin` calls, a smaller share than
     * `alarmShareInTime` ended in time.
     */
    alarmCallsMin: 10,
    alarmLatencyMs: 5_000,
    alarmShareInTime: 0.95,
  },

  /** Search. The query is counted in UTF-8 bytes after trimming. */
  search: {
    queryBytes: range(1, 1024),
    hits: range(1, 500),
    hitsDefault: 50,
  },

  feedback: {
    rating: range(0, 10),
    categoryBytes: range(1, 64),
    textBytesMax: 65_536,
  },

  diskUse: {
    filesMax: 500_000,
    recountMs: 60_000,
    waitMs: 1_000,
  },

  retention: {
    /** Hours of an age setting, and of the age in a source. */
    hours: range(1, 876_000),
    /** The time from one pass to the next. */
    passMs: 10 * 60_000,
    /** The time from one look at the room on the disk to the next, where a floor is set. */
    floorCheckMs: 30_000,
    /** Bytes kept for what must be written on a full disk: some 500 bytes for each run that goes. */
    reserveBytes: 4 * 2 ** 20,
    /** Bytes of the reserve that are given up at once. */
    reserveStepBytes: 2 ** 20,
    /** The age at which a blob goes that no event names: before, the event may still come. */
    blobGraceMs: 3_600_000,
    /** Hours after which the events of a deleted run go, where the age of runs is limited. */
    deletedHours: 24,
    /** The part of SERVICE_RETENTION_RUN_BYTES that the records of one principal's runs on hold may have. */
    heldPart: 0.5,
    /** Runs in the report, of those that go and of those that stay each. */
    reportedRuns: 1_000,
  },

  traces: {
    /** Spans that wait to be sent; the next one is dropped. */
    queueSpans: 2048,
    /** Spans that wait while the collector is away: enough to find out when it is back. */
    awaySpans: 16,
    batchSpans: 512,
    /** How long a span waits for others, unless a batch is full. */
    batchMs: 1_000,
    exportTimeoutMs: 5_000,
  },

  mirror: {
    connectTimeoutMs: 5_000,
    /** Time to write the rows of one transaction. */
    writeTimeoutMs: 10_000,
    /** Waits before the next connection, doubled from the first to the longest. */
    retryMs: range(250, 30_000),
    /** How long the answer to feedback waits for its row, if the database took less last time. */
    answerWaitMs: 100,
    /** Answers that wait for their row at once; the next one does not wait. */
    answersWaiting: 64,
  },

  webhook: {
    eventKindsMax: 32,
    kindBytes: range(1, 96),
    urlBytesMax: 2048,
    resolveTimeoutMs: 3_000,
    hooksMax: 64,
    retries: WEBHOOK_RETRIES,
    /** The longest wait that a receiver can ask for by `Retry-After`. */
    retryAfterMsMax: 10 * 60_000,
    bodyBytesMax: 2 ** 20,
    errorCharactersMax: 256,
    workerRestartMs: 2_000,
    recentDeadLettersMax: 16,
    recentDeliveriesMax: 50,
    closeDeadlineMs: 5_000,
    /** Labels, zones or sources of a filter. */
    filterEntriesMax: 32,
    filterEntryBytes: range(1, 128),
    minConfidence: range(0, 1),
    cooldownMs: range(1_000, 86_400_000),
    /** Keys of one webhook's cooldown; the one that was unused longest is forgotten. */
    cooldownKeysMax: 256,
    /** Characters of each part of such a key. */
    cooldownKeyCharacters: 128,
  },

  sse: {
    keepaliveMs: 15_000,
    ringEvents: 1024,
    queueEvents: 16,
    replayBatchEvents: 256,
    /** Open event streams of one principal. */
    streamsPerPrincipal: 1024,
    /**
     * Bytes of all streams of one principal together that were sent, and are not known to be taken by the
     * clients.
     */
    untakenBytesPerPrincipal: 8 * 2 ** 20,
    /** Bytes that each stream may have untaken, whatever the others have. */
    untakenBytesOfEach: 8 * 2 ** 10,
    kindBytes: range(1, 96),
  },

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
    /** Firings that one evaluation over a run lists; its count covers those beyond them too. */
    firingsMax: 1_024,
  },

  policy: {
    promptBytesMax: 32_768,
    outputSchemaBytesMax: 65_536,
    zoneIdentifierBytes: range(1, 128),
    zoneFrames: range(1, 300),
    acknowledgementMs: 2_000,
    /** Revisions of one run. Each request reads all of them, so their number is bounded. */
    revisionsMax: 1_024,
    /** Intervals that one replay over signals lists; its count covers those beyond them too. */
    replayIntervalsMax: 1_024,
  },

  whip: {
    promptAcknowledgementMs: 2_000,
    attachHeaderBytesMax: 8192,
    /**
     * Bytes of an offer, or of a fragment. Browsers send some 10 KB; every line and format costs time on the
     * HTTP thread.
     */
    offerBytesMax: 65_536,
    offerLinesMax: 2_000,
    offerFormatsMax: 64,
    sessionsMax: 100,
    firstCandidateMs: 3_000,
    rememberedSessionsMax: 1024,
    rememberedSessionsMs: 600_000,
  },

  /**
   * What one live session may hold, and how far a stage may fall behind. See docs/live.md#stages-and-queues.
   */
  live: {
    videoUnitsQueued: 128,
    videoUnitBytesMax: 2 * 2 ** 20,
    audioUnitsQueued: 256,
    audioUnitBytesMax: 64 * 2 ** 10,
    audioWindowsQueued: 2,
    decodedFramesQueuedKeyframe: 32,
    evidenceQueued: 8,
    commandsQueued: 8,
    jpegBytesMax: 2 * 2 ** 20,
    jpegQuality: 75,
    clipFramesMax: 64,
    /** Markers of one session each minute; a source that flickers for hours must not fill the timeline. */
    markersPerMinute: 120,
    /** Motion and novelty of a session that are kept for those who watch it: one minute. */
    signalSamples: 600,
    /**
     * How long a picture of what a session sees is given again, and how long a request for one waits for a
     * frame.
     */
    snapshotAgeMs: 1_000,
    snapshotWaitMs: 2_000,
    /** The field `enrich` of the attach configuration: the time from an event to its explanation. */
    enrichDeadlineMs: range(1_000, 120_000),
    enrichDeadlineMsDefault: 30_000,
    /**
     * Events of one session whose explanation is awaited; further ones are explained at once, as overloaded.
     */
    enrichmentsOpen: 64,
    /** The cap on output tokens a second; 0 means no cap. */
    outputTokensPerSecond: range(0, OUTPUT_TOKENS_PER_SECOND_MAX),
  },

  /** Evidence clips: the field `record` of the attach configuration. */
  evidence: {
    preRollMs: range(0, 30_000),
    preRollMsDefault: 5_000,
    postRollMs: range(0, 60_000),
    postRollMsDefault: 5_000,
    /** The longest clip; further causes prolong one. */
    clipMsMax: 120_000,
    /**
     * Encoded bytes that a session keeps for each second of both rolls: per pixel of its picture, and at
     * least the second number.
     */
    keptBytesPerSecondPerPixel: 0.5,
    keptBytesPerSecondMin: 256 * 2 ** 10,
    /**
     * The time between key frames for which a session keeps bytes beside the rolls: a clip begins with a key
     * frame, and needs all pictures since then.
     */
    keyframeEveryMs: 10_000,
    /** How often a publisher is asked for a key frame. */
    keyframeAskedMs: 4_000,
    /** Clips of a session that are being made or stored. */
    clipsHeld: 2,
    /** Stored clips whose cause has not been written yet. */
    clipsAwaited: 32,
    /** How long after its post-roll a clip ends where the source gives nothing more. */
    silenceMs: 2_000,
  },

  /** The live view: an MP4 that never ends. */
  view: {
    /** Viewers of one session. */
    viewersMax: 64,
    /**
     * Encoded bytes since the last key frame that a session keeps for the next viewer; where there are more,
     * that viewer waits for a key frame.
     */
    keptBytesMax: 4 * 2 ** 20,
    /** Bytes and fragments one viewer has not taken yet. A slower one goes on with the next key frame. */
    viewerBytesMax: 4 * 2 ** 20,
    viewerFragmentsMax: 64,
    /** Fragments on their way out of the Worker. */
    fragmentsQueued: 16,
    /** How long an answer waits for its first key frame. */
    startMs: 12_000,
    /** How long nothing may come to an answer before it ends. */
    silenceMs: 30_000,
  },

  /** The field `recording` of a named source. */
  recording: {
    /** Hours after which a segment goes. */
    hours: range(1, 876_000),
    /** Bytes of all segments of a source. */
    bytes: range(2 ** 20, 2 ** 50),
    /** The time after which a segment ends with the next key frame. */
    segmentMs: 10_000,
    /** Segments of a session that are made and not yet stored. */
    segmentsHeld: 2,
    /** Days whose names of segments are kept in memory, of all sources together. */
    daysKept: 8,
    /** The longest export, in media time. */
    exportMsMax: 7 * 86_400_000,
  },

  /** The field `clip_mode` of the attach configuration. */
  liveClip: {
    targetFps: range(1, 30),
    targetFpsDefault: 6,
    clipSeconds: range(0.1, 60),
    clipSecondsDefault: 0.5,
    delaySeconds: range(0, 60),
    delaySecondsDefault: 0.5,
  },

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

  /** The log. One commit has the rows of the longest decode, and room for their run. */
  timeline: {
    commitBytesMax: 256 * 2 ** 20,
    /**
     * Runs of all principals, those that were deleted or removed too: the register of runs takes 2 ** 24
     * entries.
     */
    runsMax: 16_000_000,
    /** Bytes of the last events that are kept in memory, of all runs together. */
    recentBytesMax: 4 * 2 ** 20,
    /** Events of one run in memory. At least half as many are kept where there is room. */
    recentEventsMax: 256,
    /** The longest payload in memory; a longer one is read from the log. */
    recentPayloadCharactersMax: 4096,
  },

  /** Wrong API keys, for each IPv4 address, or each IPv6 network of 64 bits. */
  keys: {
    /** Wrong keys a second; where there are more, no key from there is looked at. */
    wrongPerSecond: 100,
    /** Addresses that are remembered at once. */
    addresses: 4096,
  },

  /** Request bodies and URLs. */
  body: {
    jsonBytes: 4 * 2 ** 20,
    /**
     * Commas and opening brackets outside of strings: each value that JSON holds takes many times its own
     * bytes.
     */
    jsonValuesMax: 131_072,
    /**
     * Commas and opening brackets of a body with an integer of 16 digits or more: each value in it is looked
     * at, to keep its digits.
     */
    jsonValuesExactMax: 65_536,
    /**
     * Fields of one object, and objects and lists inside each other. Schemas, which callers make up, have at
     * most 1,000 parts.
     */
    jsonFieldsMax: 1024,
    /**
     * Different sequences of field names: of two objects `a, b` and `a, c` there are three, `a` among them.
     */
    jsonShapesMax: 8_192,
    jsonLevelsMax: 1024,
    uploadBytes: 200 * 2 ** 20,
    /** The time in which a JSON body must arrive; a later one is refused. */
    jsonReadMs: 30_000,
    /**
     * Pieces in which a body comes, such as chunks or frames; each costs time. A piece of fewer bytes than
     * `pieceBytesMin` is small, and `smallPiecesMax` small ones are taken.
     */
    pieceBytesMin: 256,
    smallPiecesMax: 1_000,
    /**
     * Bytes in memory of all bodies that are being received. Where there are more, the oldest of the caller
     * with the most is refused.
     */
    receivedBytesMax: 40 * 2 ** 20,
    urlCharacters: 8192,
  },

  /** Lists that come in pages. */
  list: {
    /** Entries of a page, `limit` of the request. */
    page: range(1, 1_000),
    pageDefault: 100,
  },

  /** What is in memory until its answer has gone. */
  read: {
    /** Reads of long decodes at once, each of which takes some 100 bytes a frame. */
    decodesMax: 4,
    /** Bytes from which an event of decoded frames counts as a long decode. */
    decodeBytesMax: 2 ** 20,
    /** Long answers at once, which are written in several pieces: each takes some 2 MB. */
    answersMax: 16,
    /** Requests that wait for a read, and requests that wait for a long answer. */
    waitingMax: 64,
    waitMs: 30_000,
  },

  /**
   * Answers that their clients do not take: over TCP, whatever they are; over HTTP/3, those that hold a
   * permit.
   */
  answer: {
    /** How long a client may take no byte before its connection is cut. */
    stalledMs: 60_000,
    /**
     * Clients that take nothing at once. Of more, those that have taken nothing for longest are cut off,
     * after 2 s at the earliest.
     */
    stalledMax: 64,
  },

  /** The header Idempotency-Key. The bounds on keys and bytes are for each principal. */
  idempotency: {
    keyCharacters: range(1, 128),
    keptMs: 86_400_000,
    /**
     * Keys that are kept. Of more, the oldest are forgotten, but none that is younger than `keptMsMin`: then
     * a new key is refused.
     */
    keysMax: 16_384,
    keptMsMin: 600_000,
    /** Bytes of one answer; of a longer one only the key is kept. */
    answerBytesMax: 64 * 2 ** 20,
    /** Bytes of all answers; where a new one needs room, the oldest are dropped and their keys stay. */
    bytesMax: 256 * 2 ** 20,
  },

  upload: {
    probeTimeoutMs: 10_000,
    /**
     * Bytes of the caller's name. With the prefix of its owner before it, a name stays below what file
     * systems take.
     */
    filenameBytesMax: 128,
    /** Bytes of the name that an upload had; a longer one is not kept. */
    labelBytesMax: 512,
    concurrentMax: 16,
    waitingMax: 64,
    waitMs: 30_000,
    /** The longest pause between two pieces of a body, and the longest time for the whole body. */
    idleMs: 30_000,
    receiveMs: 3_600_000,
    partHeaderBytesMax: 16 * 2 ** 10,
    /** Parts of a form: each costs time, however short it is. */
    partsMax: 1024,
  },

  blob: {
    /** References from runs to blobs whose place in the timeline is kept in memory. */
    referencesRemembered: 262_144,
  },

  picture: {
    /** Pixels of the width in which a smaller stored picture may be asked for. */
    width: range(32, 1280),
    scaleTimeoutMs: 10_000,
    pictureBytesMax: 4 * 2 ** 20,
    /** Bytes of all smaller pictures that are kept in memory. */
    keptBytesMax: 32 * 2 ** 20,
  },

  /** Backups of data directories. */
  backups: {
    /** How far a backup may be ahead of the clock before `restore` refuses to call it the newest. */
    clockAheadMs: 5 * 60_000,
  },

  http3: {
    connections: 256,
    /** Connections of one IPv4 address, or of one IPv6 network of 64 bits. */
    connectionsPerAddress: 32,
    /** Connections whose client has not yet proven its address. */
    handshakes: 512,
    /** Requests at once; a client waits before it sends more. */
    requestsPerConnection: 64,
    /** Bytes of the fields of a request: names and values, and 32 bytes for each field (RFC 9114 4.2.2). */
    fieldSectionBytes: 32 * 2 ** 10,
    /** The time in which a head must arrive; a later one is refused. */
    headReadMs: 10_000,
    /**
     * How long the rest of a body is read and dropped whose request was answered before, up to the size of an
     * upload.
     */
    restReadMs: 30_000,
    /** How long a connection without a request stays open; and after how long without a packet it is lost. */
    idleMs: 60_000,
    silenceMs: 30_000,
  },

  cors: {
    preflightMaxAgeSeconds: 600,
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
