"""Which traces a sampled evaluation takes, decided by the trace id alone."""

from hashlib import blake2b

_RANGE = 1 << 64


def is_sampled(trace_id: bytes, rate: float) -> bool:
    """Whether a share of `rate` of all traces, from 0 to 1, holds this one.

    Every evaluation, process and replay draws the same traces for one rate, and a higher rate draws those of
    a lower one and more. Ids need not be random: their hash is what is compared.
    """
    return int.from_bytes(blake2b(trace_id, digest_size=8).digest()) < rate * _RANGE
