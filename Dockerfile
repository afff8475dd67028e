# Umpire: one process that serves everything. Build it where the sources are:
#   docker build -t umpire .
# For two platforms: docker buildx build --platform linux/amd64,linux/arm64 -t umpire .
# deploy/image.sh holds the steps, so that they can be run and tested without pulling a base image.
ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /src
COPY . .
RUN deploy/image.sh package

FROM ${NODE_IMAGE}
COPY --from=build /src/out/umpire.tgz /src/deploy/image.sh /tmp/
RUN /tmp/image.sh install /tmp/umpire.tgz && rm -f /tmp/umpire.tgz /tmp/image.sh
ENV NODE_ENV=production \
    UMPIRE_HOST=0.0.0.0 \
    UMPIRE_DATA_DIR=/data
# The first start takes UMPIRE_BOOTSTRAP_KEY, UMPIRE_BOOTSTRAP_EMAIL and UMPIRE_BOOTSTRAP_PASSWORD; without a key it
# prints one (docs/deploy.md).
USER 10001:10001
VOLUME /data
EXPOSE 8484
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.UMPIRE_PORT || 8484) + '/readyz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["umpire"]
CMD ["serve"]
