-- +goose Up
-- Every statement can be repeated: MariaDB commits each one by itself, and a start may end between two of them.
CREATE TABLE IF NOT EXISTS authority (
	name        VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
	parent      VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	signing_key VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	created_at  BIGINT NOT NULL,
	der         MEDIUMBLOB NOT NULL
) ENGINE=InnoDB;

CREATE TABLE IF NOT EXISTS profile (
	name       VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
	body       MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	changed_at BIGINT NOT NULL
) ENGINE=InnoDB;

-- Ordinary certificates. authority and owner are written as revocation targets, which guard the insert.
CREATE TABLE IF NOT EXISTS certificate (
	seq        BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	serial     VARBINARY(20) NOT NULL,
	key_hash   VARBINARY(32) NOT NULL,
	authority  VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	profile    VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	owner      VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	request    VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin,
	names      MEDIUMTEXT CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	not_before BIGINT NOT NULL,
	not_after  BIGINT NOT NULL,
	der        MEDIUMBLOB NOT NULL
) ENGINE=InnoDB;
CREATE UNIQUE INDEX IF NOT EXISTS certificate_serial ON certificate (serial);
CREATE UNIQUE INDEX IF NOT EXISTS certificate_request ON certificate (request);
CREATE INDEX IF NOT EXISTS certificate_key ON certificate (key_hash);
CREATE INDEX IF NOT EXISTS certificate_owner ON certificate (owner);

-- Agent certificates: one insert each, and three indexes, for what has to be unique.
CREATE TABLE IF NOT EXISTS agent_certificate (
	seq              BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	serial           VARBINARY(20) NOT NULL,
	signed_at        BIGINT NOT NULL,
	nonce            VARBINARY(64) NOT NULL,
	agent            VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	request          VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin,
	authority        VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	delegation       VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	principal        VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	principal_serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	key_hash         VARBINARY(32) NOT NULL,
	not_before       BIGINT NOT NULL,
	not_after        BIGINT NOT NULL,
	der              MEDIUMBLOB NOT NULL
) ENGINE=InnoDB;
CREATE UNIQUE INDEX IF NOT EXISTS agent_certificate_serial ON agent_certificate (serial);
CREATE UNIQUE INDEX IF NOT EXISTS agent_certificate_evidence ON agent_certificate (signed_at, nonce);
CREATE UNIQUE INDEX IF NOT EXISTS agent_certificate_request ON agent_certificate (agent, request);

-- What an agent has stood below, once for each combination: the way from a revocation to the agents under it.
CREATE TABLE IF NOT EXISTS standing (
	agent            VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	delegation       VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	principal        VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	principal_serial VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	PRIMARY KEY (agent, delegation, principal_serial)
) ENGINE=InnoDB;
CREATE INDEX IF NOT EXISTS standing_delegation ON standing (delegation);
CREATE INDEX IF NOT EXISTS standing_principal ON standing (principal);
CREATE INDEX IF NOT EXISTS standing_principal_serial ON standing (principal_serial);

-- Names of ordinary certificates by their SHA-256, filled behind the inserts; name_mark says how far.
CREATE TABLE IF NOT EXISTS certificate_name (
	digest    VARBINARY(32) NOT NULL,
	serial    VARBINARY(20) NOT NULL,
	not_after BIGINT NOT NULL,
	PRIMARY KEY (digest, serial)
) ENGINE=InnoDB;
CREATE INDEX IF NOT EXISTS certificate_name_end ON certificate_name (not_after);
CREATE TABLE IF NOT EXISTS name_mark (
	id     BIGINT NOT NULL PRIMARY KEY,
	serial VARBINARY(20) NOT NULL
) ENGINE=InnoDB;

-- authority and not_after are those of a revoked certificate; other targets have '' and the end of time.
CREATE TABLE IF NOT EXISTS revocation (
	target    VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
	kind      VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	reason    BIGINT NOT NULL,
	at        BIGINT NOT NULL,
	note      MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	actor     VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	authority VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	not_after BIGINT NOT NULL
) ENGINE=InnoDB;

-- The latest number of each authority's list; der is kept for authorities whose key may be taken away.
CREATE TABLE IF NOT EXISTS crl (
	authority   VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
	number      BIGINT NOT NULL,
	this_update BIGINT NOT NULL,
	next_update BIGINT NOT NULL,
	der         MEDIUMBLOB NOT NULL
) ENGINE=InnoDB;
