# One image with the four programs: static binaries, no shell, no root.
#
# BUILDER=compile (the default) builds them here from golang:1.26, for the platform
# that is asked for, on this machine's own: nothing is emulated.
# BUILDER=prebuilt takes bin/ as `make stage` leaves it, for machines that cannot
# pull golang:1.26. BuildKit skips the stage that is not used.
ARG BUILDER=compile

FROM --platform=$BUILDPLATFORM golang:1.26 AS compile
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY internal internal
COPY migrations migrations
COPY sample sample
ARG VERSION=dev
ARG REVISION=
ARG TARGETOS
ARG TARGETARCH
RUN CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} go build -trimpath -buildvcs=false \
      -ldflags "-s -w -X docket/internal/service/buildinfo.Version=${VERSION} -X docket/internal/service/buildinfo.Revision=${REVISION}" \
      -o /out/ ./cmd/consumer ./cmd/parking-replayer ./cmd/docket ./cmd/collector \
 && cp /etc/ssl/certs/ca-certificates.crt /out/

FROM scratch AS prebuilt
COPY bin/consumer bin/parking-replayer bin/docket bin/collector bin/ca-certificates.crt /out/

FROM ${BUILDER} AS build

FROM scratch
ARG VERSION=dev
ARG REVISION=
# A release adds created and source.
LABEL org.opencontainers.image.title="docket" \
      org.opencontainers.image.description="Docket moves OPA decision logs through Kafka into Postgres without losing any." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION:-unknown}"
COPY --from=build /out/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/consumer /out/parking-replayer /out/docket /out/collector /usr/local/bin/
# The home of the spool. A named volume that is mounted here for the first time
# takes this folder's owner, and the programs make what they need inside.
COPY --chown=65532:65532 build/rootfs/ /var/lib/docket/
ENV DOCKET_SPOOL_DIR=/var/lib/docket/spool
VOLUME /var/lib/docket
EXPOSE 8080
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/consumer"]
