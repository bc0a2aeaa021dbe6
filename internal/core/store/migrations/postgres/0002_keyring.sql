-- +goose Up

-- One row: the key that seals all others, wrapped by the passphrase.
CREATE TABLE keyring_vault (
    id         BIGINT PRIMARY KEY CHECK (id = 1),
    kdf        TEXT   NOT NULL,
    passes     BIGINT NOT NULL,
    memory_kib BIGINT NOT NULL,
    lanes      BIGINT NOT NULL,
    salt       BYTEA  NOT NULL,
    wrapped    BYTEA  NOT NULL, -- nonce, sealed data key
    changed_at BIGINT NOT NULL
);

CREATE TABLE keyring_key (
    name       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    kind       TEXT   NOT NULL,
    spki       BYTEA  NOT NULL,
    source     TEXT   NOT NULL, -- 'sealed': here; otherwise the name of the place that holds the key
    reference  TEXT   NOT NULL, -- what that place calls it
    sealed     BYTEA  NOT NULL, -- nonce, sealed PKCS#8; empty for a key that lies elsewhere
    created_at BIGINT NOT NULL,
    retired_at BIGINT NOT NULL  -- 0: signs
);
