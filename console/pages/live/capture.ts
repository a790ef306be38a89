/** Camera, microphone and screen of this computer: asked for, and what it means where the browser gives none.
 */

import { failureText } from "../../service/failures.ts";

export type CaptureKind = "camera" | "screen";

/** Why nothing can be captured here, and what can be done. */
export interface CaptureFault {
  readonly what: string;
  readonly todo: string;
}

/** Null where the browser may capture: over HTTPS, and on the machine itself. */
export function captureBarrier(): CaptureFault | null {
  if (!globalThis.isSecureContext) {
    return {
      what: "This page did not come over a secure connection.",
      todo:
        "Browsers give cameras and screens only to pages over HTTPS, or on the machine itself. Open the console over " +
        "https://, or through a tunnel as http://localhost.",
    };
  }
  if (!navigator.mediaDevices || !("RTCPeerConnection" in globalThis)) {
    return {
      what: "This browser cannot publish.",
      todo: "It has no WebRTC. Use a current browser.",
    };
  }
  return null;
}

/** Opens the camera or lets the person choose a screen or window. Throws what the browser throws. */
export async function openCapture(
  kind: CaptureKind,
  { deviceId, hasSound }: { deviceId: string; hasSound: boolean },
): Promise<MediaStream> {
  if (kind === "screen") {
    return await navigator.mediaDevices.getDisplayMedia({
      video: { frameRate: 15 },
      audio: hasSound,
    });
  }
  return await navigator.mediaDevices.getUserMedia({
    video: {
      width: { ideal: 1280 },
      height: { ideal: 720 },
      ...(deviceId !== "" && { deviceId: { exact: deviceId } }),
    },
    audio: hasSound,
  });
}

/** Their names are known once the person has allowed one of them. */
export async function cameras(): Promise<MediaDeviceInfo[]> {
  const devices = await navigator.mediaDevices.enumerateDevices();
  return devices.filter(({ kind, deviceId }) => kind === "videoinput" && deviceId !== "");
}

const FAULTS: Readonly<Record<string, CaptureFault>> = {
  NotAllowedError: {
    what: "The browser may not use the camera.",
    todo: "Allow it in the address bar (camera symbol), and in the settings of the system, then try again.",
  },
  NotFoundError: {
    what: "There is no camera.",
    todo: "Connect one and try again, or publish the screen.",
  },
  NotReadableError: {
    what: "The camera does not start.",
    todo: "Another program may use it: close that and try again.",
  },
  OverconstrainedError: {
    what: "The chosen camera is no longer there.",
    todo: "Choose another one.",
  },
};

const NOT_SHARED: CaptureFault = {
  what: "No screen was shared.",
  todo: "Choose a screen or a window when the browser asks; the system may have to allow it, too.",
};

export function captureFault(kind: CaptureKind, error: unknown): CaptureFault {
  if (kind === "screen" && error instanceof Error && error.name === "NotAllowedError") return NOT_SHARED;
  const known = error instanceof Error ? FAULTS[error.name] : undefined;
  return known ?? failureText(error);
}

export function stopTracks(stream: MediaStream | null): void {
  for (const track of stream?.getTracks() ?? []) track.stop();
}
