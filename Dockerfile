# The image of "tickflake serve": one static program, without a shell, for a user without
# rights.
#
#     docker build -t tickflake .
#     docker run --rm -p 127.0.0.1:6380:6380 -p 127.0.0.1:8380:8380 tickflake serve --open --plaintext
#     docker exec CONTAINER /tickflake sequence create orders
#
# podman and buildah need --format docker for the health check.
#
# It listens at all addresses of the container, so it asks for TLS and for clients in a file of
# --config, or for --plaintext and --open. Without a store the state is in the volume /state. Containers with
# volumes of their own issue the same IDs: give a fleet a store by TICKFLAKE_STORE. The health command knows the
# variables and no flags of the server: give TLS by TICKFLAKE_TLS_CERT, or an address for it by TICKFLAKE_PROBES.
#
# A container has the clock of its host. Where the host boots with a wrong one, TICKFLAKE_WAIT_FOR_CLOCK=30s lets the
# server wait until NTP has set it; profiles of older runtimes forbid the question, and then it starts at once.
FROM --platform=$BUILDPLATFORM docker.io/library/golang:1.26 AS build
ARG TARGETOS TARGETARCH
WORKDIR /src
COPY . .
ENV CGO_ENABLED=0
# All is copied, .git too: the program's version is that of the tag or the commit, and a file that is missing would make
# it a changed one.
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags=-s -o /out/tickflake ./cmd/tickflake
RUN mkdir -m 0700 /out/state

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/tickflake /tickflake
COPY --from=build --chown=65532:65532 /out/state /state
ENV XDG_STATE_HOME=/state TICKFLAKE_RESP=:6380 TICKFLAKE_HTTP=:8380 TICKFLAKE_GRPC=:9380 TICKFLAKE_LOG_FORMAT=json
VOLUME /state
EXPOSE 6380 8380 9380
USER 65532:65532
HEALTHCHECK --interval=10s CMD ["/tickflake", "serve", "--check"]
ENTRYPOINT ["/tickflake"]
CMD ["serve"]
