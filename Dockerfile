# The server alone: PostgreSQL and Redis stand beside it (compose.yaml). Any OCI builder will do:
#   docker build -t rigmark .        or        buildah build --format docker -t rigmark .
# RUST_VERSION is an exact version of the official image.
ARG RUST_VERSION=1.95.0

FROM docker.io/library/rust:${RUST_VERSION}-slim-bookworm AS build
WORKDIR /build
# The dependencies, in a layer of their own that changes only with the lock file: built for a crate with nothing in it.
COPY Cargo.toml Cargo.lock ./
RUN mkdir -p src tests/it benches/serve \
    && echo 'fn main() {}' | tee src/main.rs tests/it/main.rs benches/serve/main.rs benches/calculator.rs > src/lib.rs \
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
# All that the program needs of a system: its C library, the names of its user, certificates for engines at https addresses.
RUN mkdir -p root/etc/ssl/certs root/usr/local/bin root/tmp root/var/lib/rigmark \
    && cp target/release/rigmark root/usr/local/bin/ \
    && ldd target/release/rigmark | grep -o '/[^ ]*' | xargs -I {} cp --dereference --parents {} root/ \
    && cp /etc/ssl/certs/ca-certificates.crt root/etc/ssl/certs/ \
    && echo 'hosts: files dns' > root/etc/nsswitch.conf \
    && echo 'rigmark:x:10001:10001::/var/lib/rigmark:/nonexistent' > root/etc/passwd \
    && echo 'rigmark:x:10001:' > root/etc/group \
    && chmod 1777 root/tmp && chmod 0700 root/var/lib/rigmark && chown 10001:10001 root/var/lib/rigmark

FROM scratch
COPY --from=build /build/root /
USER 10001:10001
WORKDIR /var/lib/rigmark
VOLUME /var/lib/rigmark
ENV PATH=/usr/local/bin RIGMARK_BIND=0.0.0.0:8080 RIGMARK_DATA_DIR=/var/lib/rigmark
EXPOSE 8080
STOPSIGNAL SIGTERM
# Whether the process answers. Whether its database does is /readyz, which a load balancer asks: no restart of this container would mend it.
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s CMD ["rigmark", "health"]
ENTRYPOINT ["rigmark"]
CMD ["serve"]
