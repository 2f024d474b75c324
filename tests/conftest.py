"""What holds for all tests."""

import os
import tempfile

from hypothesis import settings

# A test must see what the tool does, not what it did; and the developer's own cache is not for it.
# Tests of the cache turn it on, in a folder of theirs.
os.environ["REMAT_MIGRATE_NO_CACHE"] = "1"

# Nor are the developer's own journals.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="state-")

# A busy machine is no failure.
settings.register_profile("any speed", deadline=None)
settings.load_profile("any speed")
