"""Cuts that PySceneDetect finds: reads paths from the standard input, prints {"path", "found": {detector: cuts}} for each.

Each detector runs with its own shortest scene, 15 frames, and with one of 2 frames, because fast cutting is asked for.
"""

import json
import sys

from scenedetect import AdaptiveDetector, ContentDetector, detect

DETECTORS = {
    "Content": lambda: ContentDetector(),
    "Content, scenes of 2 frames": lambda: ContentDetector(min_scene_len=2),
    "Adaptive": lambda: AdaptiveDetector(),
    "Adaptive, scenes of 2 frames": lambda: AdaptiveDetector(min_scene_len=2),
}

for path in sys.stdin.read().splitlines():
    found = {}
    for name, detector in DETECTORS.items():
        try:
            scenes = detect(path, detector())
            found[name] = [start.frame_num for start, _ in scenes[1:]]
        except Exception as error:  # a file that OpenCV cannot open is one without cuts
            print(f"{path}: {error}", file=sys.stderr)
            found[name] = []
    print(json.dumps({"path": path, "found": found}), flush=True)
