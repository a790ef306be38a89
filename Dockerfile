# The image of the service: Deno from npm with a recorded hash, ffmpeg and bubblewrap from Debian, a user of its own, nothing to write but
# /var/lib/service. See docs/deployment.md#container. `./scripts/prove-image` runs these steps without a container runtime.

FROM debian:trixie-20260824-slim AS build
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates npm && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/service
COPY deno.json deno.lock ./
COPY scripts scripts
RUN SETUP=deno source scripts/bootstrap.sh && install -m 0755 "$DENO" /usr/local/bin/deno && rm -rf .tools
COPY src src
COPY wasm wasm
COPY weights weights
COPY seccomp seccomp
COPY schemas schemas
COPY pages pages
COPY console console
COPY client client
# The pages are built with packages that the service does not need: its own are the rest of deno.json, as pinned in deno.lock, in a cache of
# their own.
RUN DENO_DIR=/tmp/pages deno run --quiet --frozen --allow-all scripts/build_pages.ts && \
    DENO_DIR=/tmp/pages deno run --quiet --frozen --allow-read=. --allow-write=deno.json scripts/image/service_packages.ts && \
    DENO_DIR=/opt/deno deno cache --quiet --frozen=false src/main.ts src/service/service_worker.ts src/live/live_worker.ts src/media/files/decode_worker.ts src/flow/reason/schema_worker.ts src/remote/sources/relay_worker.ts src/data_tools/data_tools_worker.ts

FROM debian:trixie-20260824-slim
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends bubblewrap ca-certificates ffmpeg && rm -rf /var/lib/apt/lists/* && \
    groupadd --system --gid 10001 service && \
    useradd --system --uid 10001 --gid service --home-dir /var/lib/service --no-create-home --shell /usr/sbin/nologin service && \
    install -d -m 0700 -o service -g service /var/lib/service
WORKDIR /opt/service
COPY --from=build /usr/local/bin/deno /usr/local/bin/deno
COPY --from=build /opt/deno /opt/deno
COPY --from=build /opt/service/deno.json /opt/service/deno.lock ./
COPY --from=build /opt/service/src src
COPY --from=build /opt/service/wasm wasm
COPY --from=build /opt/service/weights weights
COPY --from=build /opt/service/seccomp seccomp
COPY --from=build /opt/service/dist dist
COPY deploy/image/healthy /usr/local/bin/healthy
ENV DENO_DIR=/opt/deno DENO_NO_UPDATE_CHECK=1 SERVICE_BIND_ADDR=0.0.0.0:8080 SERVICE_H3_BIND_ADDR=0.0.0.0:8443 \
    SERVICE_DATA_DIR=/var/lib/service
USER 10001:10001
VOLUME /var/lib/service
EXPOSE 8080 8443/udp
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 CMD ["healthy"]
ENTRYPOINT ["deno", "run", "--quiet", "--no-prompt", "--cached-only", "--allow-all", "--config", "/opt/service/deno.json", "/opt/service/src/main.ts"]
