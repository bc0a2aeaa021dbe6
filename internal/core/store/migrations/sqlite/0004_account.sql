-- +goose Up

CREATE TABLE account (
    id          TEXT    NOT NULL PRIMARY KEY, -- per_… or svc_…
    name        TEXT    NOT NULL UNIQUE,
    display     TEXT    NOT NULL,
    email       TEXT    NOT NULL,
    roles       TEXT    NOT NULL, -- separated by commas
    authorities TEXT    NOT NULL, -- separated by commas; '*': all
    enabled     INTEGER NOT NULL,
    administers INTEGER NOT NULL, -- 1: an enabled person with the role of administrator; indexed to find the last one
    created_at  INTEGER NOT NULL,
    changed_at  INTEGER NOT NULL
);
CREATE INDEX account_administers ON account (administers);

CREATE TABLE account_token (
    hash        BLOB    NOT NULL PRIMARY KEY, -- SHA-256 of the token
    id          TEXT    NOT NULL UNIQUE,
    account     TEXT    NOT NULL,
    label       TEXT    NOT NULL,
    narrowed    INTEGER NOT NULL, -- 1: only the permissions named here
    permissions TEXT    NOT NULL, -- separated by commas
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL  -- beyond every time: never
);
CREATE INDEX account_token_account ON account_token (account, id);

CREATE TABLE account_key (
    key_hash    BLOB    NOT NULL PRIMARY KEY, -- SHA-256 of the SubjectPublicKeyInfo
    account     TEXT    NOT NULL,
    label       TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL  -- beyond every time: never
);
CREATE INDEX account_key_account ON account_key (account);

-- At most one row: the code by which the first administrator is made.
CREATE TABLE account_setup (
    id          INTEGER PRIMARY KEY CHECK (id = 1),
    hash        BLOB    NOT NULL, -- SHA-256 of the code
    expires_at  INTEGER NOT NULL
);
