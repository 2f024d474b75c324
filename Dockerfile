# remat-migrate as a container image. Mount a project at /src:
#
#   docker run --rm --volume "$PWD:/src" ghcr.io/remat-migrate/remat-migrate check
#
# The image checks and fixes. `verify`, `measure`, and `plan` also need JAX and the project's own
# packages, which are installed on top of it:
#
#   FROM ghcr.io/remat-migrate/remat-migrate
#   RUN pip install jax -r requirements.txt
#
# Build it after `uv build` (or `python -m build`), which writes the wheel to dist/.
FROM python:3.13-slim

LABEL org.opencontainers.image.source="https://github.com/remat-migrate/remat-migrate" \
      org.opencontainers.image.licenses="Apache-2.0"

# `verify --base REV` reads revisions with git.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/* \
    && git config --system --add safe.directory '*'

RUN --mount=type=bind,source=dist,target=/dist \
    pip install --no-cache-dir --root-user-action=ignore "$(echo /dist/*.whl)[lsp,report]"

WORKDIR /src
ENTRYPOINT ["remat-migrate"]
CMD ["check"]
