"""What holds for all tests."""

import os

# A test must see what the tool does, not what it did; and the developer's own cache is not for it.
# Tests of the cache turn it on, in a folder of theirs.
os.environ["REMAT_MIGRATE_NO_CACHE"] = "1"
