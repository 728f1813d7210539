"""The parts of messages that are not text: images, files, audio, video."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# From the type of a part to the capability that it needs, and the word for it.
MEDIA = {
    "image_url": ("vision", "image"),
    "image": ("vision", "image"),
    "input_image": ("vision", "image"),
    "file": ("files", "file"),
    "document": ("files", "file"),
    "input_file": ("files", "file"),
    "input_audio": ("audio", "audio"),
    "audio": ("audio", "audio"),
    "audio_url": ("audio", "audio"),
    "video_url": ("video", "video"),
    "video": ("video", "video"),
}


def is_media(part: Any) -> bool:
    """Return whether a part of a message is an image, a file, audio or video."""
    return isinstance(part, Mapping) and str(part.get("type")) in MEDIA
