"""Types that all kernels share."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Int = int | np.int64  # constants are passed as np.int64, since numba would recompile for every literal
