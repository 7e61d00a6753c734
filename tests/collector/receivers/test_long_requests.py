"""A long request does not keep the event loop from anything else."""

import asyncio
import gzip
import time
from pathlib import Path

from collector.configuration.service_file import ServiceConfig
from collector.service import Service
