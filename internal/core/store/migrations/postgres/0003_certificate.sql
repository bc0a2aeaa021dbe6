-- +goose Up
CREATE TABLE authority (
	name        TEXT NOT NULL PRIMARY KEY,
	parent      TEXT NOT NULL,
	signing_key TEXT NOT NULL,
	created_at  BIGINT NOT NULL,
	der         BYTEA NOT NULL
);

CREATE TABLE profile (
	name       TEXT NOT NULL PRIMARY KEY,
	body       TEXT NOT NULL,
	changed_at BIGINT NOT NULL
);

-- Ordinary certificates. authority and owner are written as revocation targets, which guard the insert.
CREATE TABLE certificate (
	xact       XID8 NOT NULL DEFAULT pg_current_xact_id(),
	serial     BYTEA NOT NULL,
	key_hash   BYTEA NOT NULL,
	authority  TEXT NOT NULL,
	profile    TEXT NOT NULL,
	owner      TEXT NOT NULL,
	request    TEXT,
	names      TEXT NOT NULL,
	not_before BIGINT NOT NULL,
	not_after  BIGINT NOT NULL,
	der        BYTEA NOT NULL
);
CREATE INDEX certificate_xact ON certificate (xact);
CREATE UNIQUE INDEX certificate_serial ON certificate (serial);
CREATE UNIQUE INDEX certificate_request ON certificate (request) WHERE request IS NOT NULL;
CREATE INDEX certificate_key ON certificate (key_hash);
CREATE INDEX certificate_owner ON certificate (owner) WHERE owner <> '';

-- Agent certificates: one insert each, and three indexes, for what has to be unique.
CREATE TABLE agent_certificate (
	xact             XID8 NOT NULL DEFAULT pg_current_xact_id(),
	serial           BYTEA NOT NULL,
	signed_at        BIGINT NOT NULL,
	nonce            BYTEA NOT NULL,
	agent            TEXT NOT NULL,
	request          TEXT,
	authority        TEXT NOT NULL,
	delegation       TEXT NOT NULL,
	principal        TEXT NOT NULL,
	principal_serial TEXT NOT NULL,
	key_hash         BYTEA NOT NULL,
	not_before       BIGINT NOT NULL,
	not_after        BIGINT NOT NULL,
	der              BYTEA NOT NULL
);
CREATE INDEX agent_certificate_xact ON agent_certificate (xact);
CREATE UNIQUE INDEX agent_certificate_serial ON agent_certificate (serial);
CREATE UNIQUE INDEX agent_certificate_evidence ON agent_certificate (signed_at, nonce);
CREATE UNIQUE INDEX agent_certificate_request ON agent_certificate (agent, request);

-- What an agent has stood below, once for each combination: the way from a revocation to the agents under it.
CREATE TABLE standing (
	agent            TEXT NOT NULL,
	delegation       TEXT NOT NULL,
	principal        TEXT NOT NULL,
	principal_serial TEXT NOT NULL,
	PRIMARY KEY (agent, delegation, principal_serial)
);
CREATE INDEX standing_delegation ON standing (delegation);
CREATE INDEX standing_principal ON standing (principal);
CREATE INDEX standing_principal_serial ON standing (principal_serial);

-- Names of ordinary certificates by their SHA-256, filled behind the inserts; name_mark says how far.
CREATE TABLE certificate_name (
	digest    BYTEA NOT NULL,
	serial    BYTEA NOT NULL,
	not_after BIGINT NOT NULL,
	PRIMARY KEY (digest, serial)
);
CREATE INDEX certificate_name_end ON certificate_name (not_after);
CREATE TABLE name_mark (
	id     BIGINT NOT NULL PRIMARY KEY,
	serial BYTEA NOT NULL
);

-- authority and not_after are those of a revoked certificate; other targets have '' and the end of time.
CREATE TABLE revocation (
	target    TEXT NOT NULL PRIMARY KEY,
	kind      TEXT NOT NULL,
	reason    BIGINT NOT NULL,
	at        BIGINT NOT NULL,
	note      TEXT NOT NULL,
	actor     TEXT NOT NULL,
	authority TEXT NOT NULL,
	not_after BIGINT NOT NULL
);

-- The latest number of each authority's list; der is kept for authorities whose key may be taken away.
CREATE TABLE crl (
	authority   TEXT NOT NULL PRIMARY KEY,
	number      BIGINT NOT NULL,
	this_update BIGINT NOT NULL,
	next_update BIGINT NOT NULL,
	der         BYTEA NOT NULL
);
