# One image with one program, a static binary, and its other names as links: no shell, no root.
#
# BUILDER=compile (the default) builds it here from golang:1.26, for the platform
# that is asked for, on this machine's own: nothing is emulated.
# BUILDER=prebuilt takes bin/image as `make stage` leaves it, for machines that cannot
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
RUN CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} go build -tags nodemo -trimpath -buildvcs=false \
      -ldflags "-s -w -X docket/internal/service/buildinfo.Version=${VERSION} -X docket/internal/service/buildinfo.Revision=${REVISION}" \
      -o /out/bin/ ./cmd/docket \
 && for name in consumer parking-replayer collector; do ln -s docket /out/bin/$name; done \
 && cp /etc/ssl/certs/ca-certificates.crt /out/

FROM scratch AS prebuilt
COPY bin/image/ /out/

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
# A folder, so that the links stay links.
COPY --from=build /out/bin/ /usr/local/bin/
# The home of the spool. A named volume that is mounted here for the first time
# takes this folder's owner, and the programs make what they need inside.
COPY --chown=65532:65532 build/rootfs/ /var/lib/docket/
ENV DOCKET_SPOOL_DIR=/var/lib/docket/spool
VOLUME /var/lib/docket
EXPOSE 8080
USER 65532:65532
# The consumer, as in the releases that had a program for each name; `docket` is beside it.
ENTRYPOINT ["/usr/local/bin/consumer"]
