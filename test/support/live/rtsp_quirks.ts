/** How cameras depart from RTSP, one row each: what their answers look like, and what they say unasked. */

/** A reply of the test's camera is changed by these rules; `all` is every method. Text is Latin-1. */
export interface RtspQuirk {
  /** Replacements in the text of replies, in order. */
  readonly replies?: Readonly<Record<string, readonly (readonly [from: RegExp, to: string])[]>>;
  /** Text that is sent in front of each reply; `{cseq}` is the number of the request. */
  readonly before?: Readonly<Record<string, string>>;
  /** Text that is sent behind each reply, which is `{reply}`. */
  readonly after?: Readonly<Record<string, string>>;
  /** Text that is sent again and again between frames of media. */
  readonly between?: string;
  /** How many moments of media come before `between` is sent first; 3. */
  readonly betweenFrom?: number;
  /** The address of the track in the description. */
  readonly control?: string;
  /** SETUP of an address that does not match is answered with 404. */
  readonly track?: RegExp;
}

const line = (text: string): RtspQuirk => ({ replies: { all: [[/\r\n\r\n/, `\r\n${text}\r\n\r\n`]] } });
const transport = (text: string): RtspQuirk => ({
  replies: { SETUP: [[/Transport:.*/, `Transport: ${text}`]] },
});
const session = (text: string): RtspQuirk => ({ replies: { all: [[/Session:.*/, `Session${text}`]] } });
const start = (text: string): RtspQuirk => ({ replies: { all: [[/^RTSP\/1\.0 200 OK/, text]] } });
const description = (from: RegExp, to: string): RtspQuirk => ({ replies: { DESCRIBE: [[from, to]] } });
/** A frame on the channel. */
const frame = (channel: number, payload: string) =>
  `$${String.fromCharCode(channel, payload.length >> 8, payload.length & 255)}${payload}`;
const asked = (first: string, body = "") =>
  `${first} RTSP/1.0\r\nCSeq: 7\r\nSession: 1\r\n${body && `Content-Length: ${body.length}\r\n`}\r\n${body}`;
const OK = "RTSP/1.0 200 OK\r\nCSeq: {cseq}\r\n\r\n";
const BASE = "rtsp://127.0.0.1/dock";

/** Quirks with which a source plays all the same. */
export const PLAYED_QUIRKS: Readonly<Record<string, RtspQuirk>> = {
  "no quirk": {},
  // Ends of lines.
  "bare line feeds": { replies: { all: [[/\r\n/g, "\n"]] } },
  "line feeds in heads alone": { replies: { all: [[/\r\n(?=[^]*\r\n\r\n)/g, "\n"], [/\r\n\r\n/, "\n\n"]] } },
  "two carriage returns": { replies: { all: [[/\r\n/g, "\r\r\n"]] } },
  "some lines with line feeds": { replies: { all: [[/\r\n/, "\n"]] } },
  "empty lines before an answer": { before: { all: "\r\n\n\r\n" } },
  "empty lines behind an answer": { after: { all: "\r\n" } },
  // Start lines.
  "no reason phrase": start("RTSP/1.0 200"),
  "a reason phrase with an umlaut": start("RTSP/1.0 200 sch\xf6n"),
  "a reason phrase with a tab": start("RTSP/1.0 200\tOK\x01"),
  "blanks in the start line": start("RTSP/1.0  200  OK  "),
  "tabs in the start line": start("RTSP/1.0\t200\tOK"),
  "a blank before the start line": start(" RTSP/1.0 200 OK"),
  "version 1.1": start("RTSP/1.1 200 OK"),
  "version 2.0": start("RTSP/2.0 200 OK"),
  "no version": start("RTSP/ 200 OK"),
  "lower case": start("rtsp/1.0 200 ok"),
  "status 201": start("RTSP/1.0 201 Created"),
  "continue first": { before: { all: "RTSP/1.0 100 Continue\r\nCSeq: {cseq}\r\n\r\n" } },
  // Header lines that nobody needs.
  "a line without a colon": line("X-Junk without colon"),
  "a line without a name": line(": 1"),
  "a name with a dot": line("x.vendor.info: 1"),
  "a name that begins with a digit": line('3GPP-Adaptation: url="x"'),
  "a name with blanks": line("Camera Model: 1"),
  "a control character": line("X-Model: cam\x01era"),
  "a NUL": line("X-Model: cam\0era"),
  "a folded line": line("X-Long: a\r\n b\r\n\tc"),
  "a folded line that looks like another": line("X-Long: a\r\n Content-Length: 9999"),
  "a line of 6,000 characters": line(`X-Long: ${"x".repeat(6_000)}`),
  "two hundred lines": line("X-Line: 1\r\n".repeat(200).trimEnd()),
  // Header lines that are needed.
  "names in lower case": {
    replies: {
      all: [
        [/(CSeq|Session|Transport|Content-Length|Public):/g, "$1:"],
        [/CSeq/, "cseq"],
        [/Session/, "session"],
        [/Transport/, "transport"],
        [/Content-Length/, "content-length"],
      ],
    },
  },
  "a blank before the colon": { replies: { all: [[/^([A-Z][\w-]+):/gm, "$1 :"]] } },
  "no blank behind the colon": { replies: { all: [[/^([A-Z][\w-]+): /gm, "$1:"]] } },
  "tabs behind the colon": { replies: { all: [[/^([A-Z][\w-]+): /gm, "$1:\t\t"]] } },
  "numbers twice": { replies: { all: [[/(CSeq:.*\r\n)/, "$1$1"]] } },
  "session twice": { replies: { all: [[/(Session:.*\r\n)/, "$1$1"]] } },
  "transport twice": { replies: { SETUP: [[/(Transport:.*\r\n)/, "$1$1"]] } },
  "length twice": { replies: { all: [[/(Content-Length:.*\r\n)/, "$1$1"]] } },
  "length with a sign": { replies: { all: [[/Content-Length: /, "Content-Length: +00"]] } },
  "length with words": { replies: { all: [[/(Content-Length: \S+)/, "$1 bytes"]] } },
  "length 0 without a body": {
    replies: {
      OPTIONS: [[/\r\n\r\n/, "\r\nContent-Length: 0\r\n\r\n"]],
      SETUP: [[/\r\n\r\n/, "\r\nContent-Length: 0\r\n\r\n"]],
    },
  },
  "a body where none belongs": { replies: { SETUP: [[/\r\n\r\n/, "\r\nContent-Length: 5\r\n\r\nhello"]] } },
  "a length that is too short": { after: { DESCRIBE: "\r\na=tool:x\r\n" } },
  "public on two lines": {
    replies: { OPTIONS: [[/Public:.*/, "Public: OPTIONS, DESCRIBE\r\nPublic: SETUP, PLAY"]] },
  },
  "no public": { replies: { OPTIONS: [[/Public:.*\r\n/, ""]] } },
  "no numbers": { replies: { all: [[/CSeq:.*\r\n/, ""]] } },
  "number 0": { replies: { all: [[/CSeq:.*/, "CSeq: 0"]] } },
  "number 1": { replies: { all: [[/CSeq:.*/, "CSeq: 1"]] } },
  "numbers that are words": { replies: { all: [[/CSeq:.*/, "CSeq: x"]] } },
  // Sessions.
  "a session with a timeout": session(": 12345678;timeout=60"),
  "a session with blanks": session(":  12345678 ; timeout = 60"),
  "a session with odd characters": session(': a+b/c==_$-.~;Timeout="60"'),
  "a session with an empty parameter": session(": 12345678;;timeout=;"),
  "no session behind PLAY": { replies: { PLAY: [[/Session:.*\r\n/, ""]] } },
  "a folded session": session(": 12345678\r\n ;timeout=60"),
  // Transport.
  "blanks in the transport": transport("RTP/AVP/TCP; unicast; interleaved=0-1"),
  "blanks around everything": transport(" RTP/AVP/TCP ; unicast ; interleaved = 0 - 1 ; ssrc = 1 "),
  "a comma in quotes": transport('RTP/AVP/TCP;unicast;interleaved=0-1;mode="PLAY,RECORD"'),
  "a semicolon in quotes": transport('RTP/AVP/TCP;unicast;interleaved=0-1;x="a;b"'),
  "quotes that do not end": transport('RTP/AVP/TCP;unicast;interleaved=0-1;x="a'),
  "no channels": transport("RTP/AVP/TCP;unicast"),
  "no transport": { replies: { SETUP: [[/Transport:.*\r\n/, ""]] } },
  "an empty transport": transport(""),
  "TCP by its channels": transport("RTP/AVP;unicast;interleaved=0-1"),
  "transport in lower case": transport("rtp/avp/tcp;unicast;interleaved=0-1;mode=play"),
  "transport in upper case": transport("RTP/AVP/TCP;UNICAST;INTERLEAVED=0-1;MODE=PLAY"),
  "another profile": transport("RTP/AVPF/TCP;unicast;interleaved=0-1"),
  "a blank in the number of the sender": transport("RTP/AVP/TCP;unicast;interleaved=0-1;ssrc=     D93FF"),
  "channels at the end": transport(
    'RTP/AVP/TCP;unicast;mode="PLAY";ssrc=1234abcd;source=10.0.0.1;interleaved=0-1',
  ),
  "addresses and ports": transport(
    "RTP/AVP/TCP;unicast;destination=10.0.0.9;source=10.0.0.1;client_port=0-1;server_port=6970-6971;interleaved=0-1",
  ),
  "one channel": transport("RTP/AVP/TCP;unicast;interleaved=0"),
  "a semicolon at the end": transport("RTP/AVP/TCP;unicast;interleaved=0-1;"),
  "several transports": transport("RTP/AVP/TCP;unicast;interleaved=0-1,RTP/AVP;unicast;client_port=1-2"),
  "a folded transport": transport("RTP/AVP/TCP;unicast;\r\n interleaved=0-1"),
  // What is said unasked.
  "a camera that asks for options": { between: asked("OPTIONS *") },
  "a camera that sets parameters": { between: asked(`SET_PARAMETER ${BASE}`, "x: 1\r\n") },
  "a camera that asks for parameters": { between: asked(`GET_PARAMETER ${BASE}`) },
  "a camera that announces": { between: asked(`ANNOUNCE ${BASE}`, "v=0\r\ns=x\r\n\r\n") },
  "a camera that redirects later": { between: asked(`REDIRECT ${BASE}`) },
  "a camera that ends the session, and goes on": { between: asked(`TEARDOWN ${BASE}`) },
  "a camera that asks in its own way": { between: "play_notify  rtsp://x/  rtsp/2.0\nCSeq:9\n\n" },
  "a camera that asks before it answers": { before: { SETUP: asked("OPTIONS *"), PLAY: asked("OPTIONS *") } },
  "second answers": { after: { all: OK } },
  "all answers twice": { after: { all: "{reply}" } },
  "answers that nobody asked for": { between: "RTSP/1.0 200 OK\r\nCSeq: 99\r\n\r\n" },
  "refusals that nobody asked for": { between: "RTSP/1.0 454 Session Not Found\r\nCSeq: 99\r\n\r\n" },
  "empty lines between frames": { between: "\r\n\r\n" },
  "zeros between frames": { between: "\0".repeat(37) },
  "text between frames": { between: "hello\nworld\n" },
  "the rest of a frame": { between: "\x41\x9a\x01 RTSP $ \xff\x80".repeat(40) },
  "half a frame": { between: frame(0, `\x80\x60${"x".repeat(200)}`).slice(0, 100) },
  "empty frames": { between: frame(0, "").repeat(300) },
  "short frames": { between: frame(1, "\x80\xc9\0\0").repeat(300) },
  "a channel that nobody set up": { between: frame(9, "unknown channel data") },
  "frames before the answer": { before: { PLAY: frame(0, "at least eight bytes") } },
  "frames behind the description": { after: { DESCRIBE: frame(0, "at least eight bytes") } },
  "a frame within a head": { replies: { PLAY: [[/\r\n/, `\r\n${frame(1, "at least eight bytes")}`]] } },
  // Addresses.
  "no base": { replies: { DESCRIBE: [[/^(RTSP.*\r\n)/, "$1"]] } },
  "a base of another host": {
    replies: { DESCRIBE: [[/\r\n/, "\r\nContent-Base: rtsp://192.168.1.10:554/dock/\r\n"]] },
  },
  "a base without a port": {
    replies: { DESCRIBE: [[/\r\n/, "\r\nContent-Base: rtsp://camera.test/dock/\r\n"]] },
  },
  "a base that is a path": {
    replies: { DESCRIBE: [[/\r\n/, "\r\nContent-Base: /dock/\r\n"]] },
    track: /^rtsp:\/\/camera\.test:\d+\/dock\/track/,
  },
  "an empty base": { replies: { DESCRIBE: [[/\r\n/, "\r\nContent-Base:\r\n"]] } },
  "a base in brackets": {
    replies: { DESCRIBE: [[/\r\n/, "\r\nContent-Base: <rtsp://camera.test/dock/>\r\n"]] },
    track: /^rtsp:\/\/camera\.test\/dock\/track/,
  },
  "a track that is a path": {
    control: "/media/1/video/1",
    track: /^rtsp:\/\/camera\.test:\d+\/media\/1\/video\/1$/,
  },
  "a path behind the base": { control: "/video/1", track: /^rtsp:\/\/camera\.test:\d+\/dock\/video\/1$/ },
  "a path as ffmpeg joins it": {
    control: "/video/1",
    track: /^rtsp:\/\/camera\.test:\d+\/dock\/\/video\/1$/,
  },
  "a track with a host": {
    control: "rtsp://192.168.1.10/dock/track1",
    track: /^rtsp:\/\/192\.168\.1\.10\/dock\/track1$/,
  },
  "a track whose host is not known there": {
    control: "rtsp://192.168.1.10/dock/track1",
    track: /^rtsp:\/\/camera\.test:\d+\/dock\/track1$/,
  },
  "a track with a password": { control: "rtsp://admin:secret@192.168.1.10/dock/track1" },
  "a track that is a query": { control: "?track=1" },
  "a track with a blank": { control: "track 1", track: /\/dock\/track 1$/ },
  "blanks behind a track": { control: "track1\t ", track: /\/dock\/track1$/ },
  "no track": { replies: { DESCRIBE: [[/a=control:.*/, ""]] } },
  // Descriptions.
  "a description with line feeds": description(/\r\n(?=[a-z]=)(?![^]*\r\n\r\n)/g, "\n"),
  "a description with blanks": description(/^(a=rtpmap.*)\r$/m, "$1 \r"),
  "a session-wide address": description(/(t=0 0)/, "$1\r\na=control:*\r\na=range:npt=0-"),
  "an empty line of information": description(/(s=test)/, "$1\r\ni=\r\nc=IN IP4 0.0.0.0\r\ne="),
  // Refusals that do not matter.
  "OPTIONS not implemented": {
    replies: { OPTIONS: [[/^RTSP\/1\.0 200 OK/, "RTSP/1.0 501 Not Implemented"]] },
  },
  "OPTIONS not allowed": {
    replies: { OPTIONS: [[/^RTSP\/1\.0 200 OK/, "RTSP/1.0 405 Method Not Allowed"]] },
  },
  "OPTIONS not found": { replies: { OPTIONS: [[/^RTSP\/1\.0 200 OK/, "RTSP/1.0 404 Not Found"]] } },
  "OPTIONS with a status of its own": { replies: { OPTIONS: [[/^RTSP\/1\.0 200 OK/, "RTSP/1.0 999 No"]] } },
  "OPTIONS for whom it knows": {
    replies: { OPTIONS: [[/^RTSP\/1\.0 200 OK/, "RTSP/1.0 401 Unauthorized"]] },
  },
  // Words about the media.
  "odd words about the media": {
    replies: {
      PLAY: [[/\r\n/, "\r\nRTP-Info: url=trackID=0;seq=;rtptime=\r\nRange: npt=now-\r\nScale: x\r\n"]],
    },
  },
  "words about the media twice": {
    replies: { PLAY: [[/\r\n/, "\r\nRTP-Info: url=a;seq=1\r\nRTP-Info: url=b;seq=2\r\n"]] },
  },
};
