"""Asks a running service whether it is ready, as `tracegrade health` does for containers and people."""

import http.client
import urllib.error
import urllib.request

from collector.endpoint import parse_endpoint

_TIMEOUT_SECONDS = 5.0


def ask_readiness(endpoint: str) -> tuple[bool, str]:
    """Whether the service at `endpoint` (as configuration writes it) is ready, and what it said or why not.

    Asked directly, whatever proxy the environment names for other traffic.
    """
    host, port = parse_endpoint(endpoint)
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}/readyz"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=_TIMEOUT_SECONDS) as response:
            return True, response.read().decode(errors="replace").strip()
    except urllib.error.HTTPError as error:
        with error:
            return False, error.read().decode(errors="replace").strip()
    except (OSError, ValueError, http.client.HTTPException) as error:
        return False, f"no answer from {url}: {error}"
