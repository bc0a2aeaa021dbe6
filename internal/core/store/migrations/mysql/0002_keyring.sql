-- +goose Up

-- One row: the key that seals all others, wrapped by the passphrase.
CREATE TABLE IF NOT EXISTS keyring_vault (
    id         BIGINT         NOT NULL PRIMARY KEY CHECK (id = 1),
    kdf        VARCHAR(16)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    passes     BIGINT         NOT NULL,
    memory_kib BIGINT         NOT NULL,
    lanes      BIGINT         NOT NULL,
    salt       VARBINARY(64)  NOT NULL,
    wrapped    VARBINARY(255) NOT NULL, -- nonce, sealed data key
    changed_at BIGINT         NOT NULL
) ENGINE=InnoDB;

CREATE TABLE IF NOT EXISTS keyring_key (
    name       VARCHAR(128)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    kind       VARCHAR(16)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    spki       VARBINARY(1024) NOT NULL,
    source     VARCHAR(64)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL, -- 'sealed': here; otherwise the name of the place that holds the key
    reference  VARCHAR(1024)   NOT NULL, -- what that place calls it
    sealed     VARBINARY(4096) NOT NULL, -- nonce, sealed PKCS#8; empty for a key that lies elsewhere
    created_at BIGINT          NOT NULL,
    retired_at BIGINT          NOT NULL  -- 0: signs
) ENGINE=InnoDB;
