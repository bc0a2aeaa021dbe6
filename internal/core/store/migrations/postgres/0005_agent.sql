-- +goose Up
CREATE TABLE IF NOT EXISTS principal (
	serial      TEXT NOT NULL PRIMARY KEY,
	person      TEXT NOT NULL,
	key_hash    TEXT NOT NULL,
	held_as     TEXT NOT NULL,
	not_after   BIGINT NOT NULL,
	certificate BYTEA NOT NULL
);
CREATE INDEX IF NOT EXISTS principal_key ON principal (key_hash);
CREATE INDEX IF NOT EXISTS principal_person ON principal (person, serial);

CREATE TABLE IF NOT EXISTS agent (
	id          TEXT NOT NULL PRIMARY KEY,
	name        TEXT NOT NULL,
	owner       TEXT NOT NULL,
	delegation  TEXT NOT NULL,
	key_hash    TEXT NOT NULL,
	spki        BYTEA,
	created_at  BIGINT NOT NULL,
	enrolled_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS agent_owner ON agent (owner, name);
CREATE INDEX IF NOT EXISTS agent_key ON agent (key_hash);

CREATE TABLE IF NOT EXISTS delegation (
	id           TEXT NOT NULL PRIMARY KEY,
	principal    TEXT NOT NULL,
	name         TEXT NOT NULL,
	terms        BYTEA NOT NULL,
	terms_hash   TEXT NOT NULL,
	proof        TEXT NOT NULL,
	until        BIGINT NOT NULL,
	created_at   BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS delegation_principal ON delegation (principal, id);

CREATE TABLE IF NOT EXISTS agent_delegation (
	delegation TEXT NOT NULL,
	agent      TEXT NOT NULL,
	since      BIGINT NOT NULL,
	PRIMARY KEY (delegation, agent)
);

CREATE TABLE IF NOT EXISTS enrolment (
	hash       TEXT NOT NULL PRIMARY KEY,
	id         TEXT NOT NULL,
	agent      TEXT NOT NULL,
	delegation TEXT NOT NULL,
	until      BIGINT NOT NULL,
	used_by    TEXT NOT NULL
);

-- +goose Down
DROP TABLE enrolment;
DROP TABLE agent_delegation;
DROP TABLE delegation;
DROP TABLE agent;
DROP TABLE principal;
