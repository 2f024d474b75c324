"""Which fixes pay, by what is measured without them and with them."""

from __future__ import annotations

import pytest

from remat_migrate.measure.trial import Effect

PAYS = ""
RAISES = "it raises the peak"
DEAR = "it adds a larger share of operations than it saves of memory"
NOTHING = "it changes nothing that can be measured"


@pytest.mark.parametrize(
    ("peak", "operations", "compiled", "objection"),
    [
        ((1000, 500), (100, 120), (1000, 500), PAYS),
        ((1000, 500), (100, 120), None, PAYS),
        # A checkpoint that comes off where it saved nothing.
        ((1000, 1000), (133, 100), (1000, 1000), PAYS),
        ((1000, 995), (133, 100), (1000, 1010), PAYS),
        # What only the compiler sees.
        ((1000, 1000), (100, 100), (3490, 629), PAYS),
        ((1000, 900), (100, 120), (1000, 900), DEAR),
        ((1000, 1000), (100, 120), (1000, 1000), DEAR),
        ((1000, 1000), (100, 100), (1000, 1000), NOTHING),
        ((1000, 1000), (100, 100), None, NOTHING),
        ((500, 1000), (133, 100), (500, 1000), RAISES),
        # A softmax whose checkpoint pays in the compiled program alone.
        ((1000, 1000), (118, 100), (1000, 1200), RAISES),
        ((1000, 500), (100, 120), (500, 600), RAISES),
    ],
)
def test_objection(peak, operations, compiled, objection):
    assert Effect("train:loss", peak, operations, compiled).objection == objection
