-- +goose Up

CREATE TABLE IF NOT EXISTS account (
    id          VARCHAR(64)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY, -- per_… or svc_…
    name        VARCHAR(128)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL UNIQUE,
    display     VARCHAR(256)  CHARACTER SET utf8mb4 NOT NULL,
    email       VARCHAR(320)  CHARACTER SET utf8mb4 NOT NULL,
    roles       VARCHAR(255)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL, -- separated by commas
    authorities VARCHAR(8192) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, -- separated by commas; '*': all
    enabled     BIGINT        NOT NULL,
    administers BIGINT        NOT NULL, -- 1: an enabled person with the role of administrator; indexed to find the last one
    created_at  BIGINT        NOT NULL,
    changed_at  BIGINT        NOT NULL,
    INDEX account_administers (administers)
) ENGINE=InnoDB;

CREATE TABLE IF NOT EXISTS account_token (
    hash        VARBINARY(32) NOT NULL PRIMARY KEY, -- SHA-256 of the token
    id          VARCHAR(64)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL UNIQUE,
    account     VARCHAR(64)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    label       VARCHAR(256)  CHARACTER SET utf8mb4 NOT NULL,
    narrowed    BIGINT        NOT NULL, -- 1: only the permissions named here
    permissions VARCHAR(1024) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, -- separated by commas
    created_at  BIGINT        NOT NULL,
    expires_at  BIGINT        NOT NULL, -- beyond every time: never
    INDEX account_token_account (account, id)
) ENGINE=InnoDB;

CREATE TABLE IF NOT EXISTS account_key (
    key_hash    VARBINARY(32) NOT NULL PRIMARY KEY, -- SHA-256 of the SubjectPublicKeyInfo
    account     VARCHAR(64)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    label       VARCHAR(256)  CHARACTER SET utf8mb4 NOT NULL,
    created_at  BIGINT        NOT NULL,
    expires_at  BIGINT        NOT NULL, -- beyond every time: never
    INDEX account_key_account (account)
) ENGINE=InnoDB;

-- At most one row: the code by which the first administrator is made.
CREATE TABLE IF NOT EXISTS account_setup (
    id          BIGINT        NOT NULL PRIMARY KEY CHECK (id = 1),
    hash        VARBINARY(32) NOT NULL, -- SHA-256 of the code
    expires_at  BIGINT        NOT NULL
) ENGINE=InnoDB;
