-- +goose Up

-- One row: the key that seals all others, wrapped by the passphrase.
CREATE TABLE keyring_vault (
    id         INTEGER PRIMARY KEY CHECK (id = 1),
    kdf        TEXT    NOT NULL,
    passes     INTEGER NOT NULL,
    memory_kib INTEGER NOT NULL,
    lanes      INTEGER NOT NULL,
    salt       BLOB    NOT NULL,
    wrapped    BLOB    NOT NULL, -- nonce, sealed data key
    changed_at INTEGER NOT NULL
);

CREATE TABLE keyring_key (
    name       TEXT    NOT NULL PRIMARY KEY,
    kind       TEXT    NOT NULL,
    spki       BLOB    NOT NULL,
    source     TEXT    NOT NULL, -- 'sealed': here; otherwise the name of the place that holds the key
    reference  TEXT    NOT NULL, -- what that place calls it
    sealed     BLOB    NOT NULL, -- nonce, sealed PKCS#8; empty for a key that lies elsewhere
    created_at INTEGER NOT NULL,
    retired_at INTEGER NOT NULL  -- 0: signs
);
