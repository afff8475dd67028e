# Umpire: one process that serves everything. Build it where the sources are:
#   docker build -t umpire .
# For two platforms: docker buildx build --platform linux/amd64,linux/arm64 -t umpire .
# deploy/image.sh holds the steps, so that they can be run and tested without pulling a base image.
# The version is that of console/package.json; NODE_DIGEST names its content too, as @sha256:... (docs/deploy.md).
ARG NODE_DIGEST=

FROM node:24.21.0-bookworm-slim${NODE_DIGEST} AS build
WORKDIR /src
COPY . .
RUN deploy/image.sh package

FROM node:24.21.0-bookworm-slim${NODE_DIGEST}
COPY --from=build /src/out/umpire /usr/local/lib/node_modules/umpire
COPY --from=build /src/deploy/image.sh /tmp/
RUN /tmp/image.sh install && rm /tmp/image.sh
ENV NODE_ENV=production \
    UMPIRE_HOST=0.0.0.0 \
    UMPIRE_DATA_DIR=/data
# The first start takes UMPIRE_BOOTSTRAP_KEY, UMPIRE_BOOTSTRAP_EMAIL and UMPIRE_BOOTSTRAP_PASSWORD; without a key it
# puts one into /data/first-start.txt (docs/deploy.md).
USER 10001:10001
VOLUME /data
EXPOSE 8484
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.UMPIRE_PORT || 8484) + '/readyz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["umpire"]
CMD ["serve"]
