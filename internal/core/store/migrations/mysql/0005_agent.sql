-- +goose Up
CREATE TABLE IF NOT EXISTS principal (
	serial      VARCHAR(96) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
	person      VARCHAR(96) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	key_hash    VARCHAR(96) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	held_as     VARCHAR(96) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	not_after   BIGINT NOT NULL,
	certificate MEDIUMBLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS principal_key ON principal (key_hash);
CREATE INDEX IF NOT EXISTS principal_person ON principal (person, serial);

CREATE TABLE IF NOT EXISTS agent (
	id          VARCHAR(96) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
	name        VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	owner       VARCHAR(96) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	delegation  VARCHAR(96) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	key_hash    VARCHAR(96) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	spki        MEDIUMBLOB,
	created_at  BIGINT NOT NULL,
	enrolled_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS agent_owner ON agent (owner, name);
CREATE INDEX IF NOT EXISTS agent_key ON agent (key_hash);

CREATE TABLE IF NOT EXISTS delegation (
	id           VARCHAR(96) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
	principal    VARCHAR(96) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	name         VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	terms        MEDIUMBLOB NOT NULL,
	terms_hash   VARCHAR(96) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	proof        VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	until        BIGINT NOT NULL,
	created_at   BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS delegation_principal ON delegation (principal, id);

CREATE TABLE IF NOT EXISTS agent_delegation (
	delegation VARCHAR(96) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	agent      VARCHAR(96) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	since      BIGINT NOT NULL,
	PRIMARY KEY (delegation, agent)
);

CREATE TABLE IF NOT EXISTS enrolment (
	hash       VARCHAR(96) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
	id         VARCHAR(96) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	agent      VARCHAR(96) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	delegation VARCHAR(96) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	until      BIGINT NOT NULL,
	used_by    VARCHAR(96) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
);

-- +goose Down
DROP TABLE enrolment;
DROP TABLE agent_delegation;
DROP TABLE delegation;
DROP TABLE agent;
DROP TABLE principal;
