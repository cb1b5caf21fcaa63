# The experiment and its verification, for anyone with a container engine:
#
#     docker build --tag checkpoint-resume .
#     docker run checkpoint-resume trace --seed 11 --scenario omit_rng
#
# The base is pinned by digest and no Debian package is added, so the digest pins them all; every wheel is pinned by
# its hash in requirements.txt, and the numerics by the variables below.
ARG BASE_IMAGE=python:3.11.16-slim-bookworm@sha256:528257d48c1da0dcecc2e725d1ae34498d60c965f1241e39cd6a85a8859bdf84

FROM ${BASE_IMAGE} AS build
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
ENV PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
COPY requirements.txt tools/setup.sh /build/
# The wheels' own tests and C++ headers, a fifth of their size, are of no use here, and neither is an installer.
RUN sh /build/setup.sh python3 /opt/venv /build/requirements.txt "$TORCH_INDEX" \
    && /opt/venv/bin/python -m pip uninstall --quiet --yes pip \
    && cd /opt/venv/lib/python3.*/site-packages \
    && rm -r torch/bin/*Test torch/bin/test_* \
    && find . -type d '(' -name test -o -name tests -o -name include ')' -prune -exec rm -r '{}' +
COPY experiment.py verify.py README.md LICENSE /opt/checkpoint-resume/
COPY schemas /opt/checkpoint-resume/schemas
COPY expected /opt/checkpoint-resume/expected
# A checkout may be readable for its owner alone; the image's user is someone else.
RUN chmod -R u=rwX,go=rX /opt/checkpoint-resume

FROM ${BASE_IMAGE}
# /var/tmp and the like: the user can write to /tmp and to what is mounted, and nowhere else.
RUN find / -xdev '(' -type d -o -type f ')' -perm -0002 ! -path /tmp -exec chmod o-w '{}' +
COPY --from=build /opt/venv /opt/venv
COPY --from=build /opt/checkpoint-resume /opt/checkpoint-resume
ENV PATH=/opt/venv/bin:$PATH \
    HOME=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    ATEN_CPU_CAPABILITY=default \
    MKL_CBWR=COMPATIBLE
WORKDIR /opt/checkpoint-resume
USER 10001:10001
ENTRYPOINT ["python", "/opt/checkpoint-resume/experiment.py"]
CMD ["--help"]

# Last, so that another revision or base name rebuilds no layer.
ARG BASE_NAME=python:3.11.16-slim-bookworm
ARG BASE_DIGEST=sha256:528257d48c1da0dcecc2e725d1ae34498d60c965f1241e39cd6a85a8859bdf84
ARG SOURCE
ARG REVISION
LABEL org.opencontainers.image.title="checkpoint-resume" \
      org.opencontainers.image.description="Does a training resumed from a checkpoint stay, bit for bit, the training that was never interrupted?" \
      org.opencontainers.image.version="1.0.0" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.base.name="${BASE_NAME}" \
      org.opencontainers.image.base.digest="${BASE_DIGEST}" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.revision="${REVISION}"
