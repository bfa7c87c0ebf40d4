"""Keys of tuned operations: the device, the operation whatever its names, a version.

Source: `xla/service/gpu/autotuning/autotune_cache_key.{h,cc}`.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import Final

from msa.hlo.identity import canonical_text
from msa.hlo.instruction import Instruction
from msa.runtime.perf.device import DeviceDescription

CURRENT_VERSION: Final = 49
"""Results of other versions are not used; raised when tuned code changes."""


@dataclass(frozen=True, slots=True, order=True)
class AutotuneKey:
    """What a tuned configuration is for.

    Attributes:
        device: text of the device.
        hlo: canonical text of the operation.
        version: of the code that is tuned.

    >>> print(AutotuneKey("CUDA: 8.0", "f32[8]{0} negate(f32[8]{0})"))
    <key model='CUDA: 8.0', hlo='f32[8]{0} negate(f32[8]{0})', version=49>
    """

    device: str
    hlo: str
    version: int = CURRENT_VERSION

    @staticmethod
    def of(
        instruction: Instruction,
        device: DeviceDescription,
        version: int = CURRENT_VERSION,
    ) -> AutotuneKey:
        """The key of an instruction on a device.

        Names and metadata do not matter; shapes with layouts, opcodes, attributes,
        the backend config and constants do. A fusion is the text of what is fused.
        """
        return AutotuneKey(device.to_text(), canonical_text(instruction), version)

    def __str__(self) -> str:
        return f"<key model='{self.device}', hlo='{self.hlo}', version={self.version}>"

    @property
    def file_stem(self) -> str:
        """SHA-256 of the text in the URL-safe alphabet of base 64, without padding.

        >>> len(AutotuneKey("d", "h").file_stem)
        43
        """
        digest = hashlib.sha256(str(self).encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
