# syntax=docker/dockerfile:1
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
WORKDIR /src
# Without pip: nothing is installed once the image is built.
RUN python -m venv --without-pip /opt/fairlease
COPY requirements-image.lock ./
RUN pip --python /opt/fairlease/bin/python install --no-cache-dir --no-deps --require-hashes \
    --only-binary :all: -r requirements-image.lock
COPY pyproject.toml README.md LICENSE ./
COPY functions functions
COPY migrations migrations
COPY supabase/functions/_shared supabase/functions/_shared
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . && \
    pip --python /opt/fairlease/bin/python install --no-cache-dir --no-deps --no-index /wheels/*.whl

FROM python:${PYTHON}-slim
LABEL org.opencontainers.image.title="fairlease" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/fairlease /opt/fairlease
# The root file system may be read-only; whatever wants a home finds one in /tmp.
ENV PATH=/opt/fairlease/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/tmp
USER 10001:10001
EXPOSE 8787
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8787/healthz', timeout=4)"]
ENTRYPOINT ["fairlease"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8787"]
