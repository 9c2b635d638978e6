"""All competitions. Whoever imports this has the makers registered, in the order of the lists below."""

import one_class  # noqa: F401
import coco  # noqa: F401
import probability  # noqa: F401
import several_labels  # noqa: F401
import ranked_and_others  # noqa: F401
import variants  # noqa: F401
from registry import COMPETITIONS  # noqa: F401
