# The server alone: PostgreSQL and Redis stand beside it (compose.yaml). Any OCI builder will do:
#   docker build -t rigmark .        or        buildah build --format docker -t rigmark .
# RUST_VERSION is an exact version of the official image.
ARG RUST_VERSION=1.95.0

FROM docker.io/library/rust:${RUST_VERSION}-slim-bookworm AS build
WORKDIR /build
# The dependencies, in a layer of their own that changes only with the lock file: built for a crate with nothing in it.
COPY Cargo.toml Cargo.lock ./
RUN mkdir -p src tests/it benches \
    && echo 'fn main() {}' | tee src/main.rs tests/it/main.rs benches/serve.rs > src/lib.rs \
    && cargo build --release --locked --bin rigmark \
    && rm -r src tests benches
# What the build reads: code, and what the code includes.
COPY data data
COPY locales locales
COPY migrations migrations
COPY static static
COPY templates templates
COPY benches benches
COPY src src
# Cargo goes by times: these must be younger than the empty crate.
RUN mkdir -p tests/it && touch tests/it/main.rs src/main.rs src/lib.rs && cargo build --release --locked --bin rigmark

FROM docker.io/library/debian:bookworm-slim
# The certificates of the authorities, for engines and services at https addresses.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
RUN useradd --system --uid 10001 --user-group --no-create-home --home-dir /var/lib/rigmark rigmark \
    && install --directory --owner=rigmark --group=rigmark --mode=0700 /var/lib/rigmark
COPY --from=build /build/target/release/rigmark /usr/local/bin/rigmark
USER rigmark
WORKDIR /var/lib/rigmark
VOLUME /var/lib/rigmark
ENV RIGMARK_BIND=0.0.0.0:8080 RIGMARK_DATA_DIR=/var/lib/rigmark
EXPOSE 8080
STOPSIGNAL SIGTERM
# Whether the process answers. Whether the database does is /readyz, which a load balancer asks: a restart of this container mends none.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8080 && printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3 && head -n 1 <&3 | grep -q ' 200 '"]
ENTRYPOINT ["rigmark"]
CMD ["serve"]
