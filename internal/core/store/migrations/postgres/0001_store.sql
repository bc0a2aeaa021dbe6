-- +goose Up
-- xact is the writing transaction: readers take what lies below pg_snapshot_xmin, where nothing can appear any more.
CREATE TABLE feed (
	seq    BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at     BIGINT NOT NULL,
	topic  TEXT NOT NULL,
	item   TEXT NOT NULL,
	origin TEXT NOT NULL DEFAULT '',
	xact   XID8 NOT NULL DEFAULT pg_current_xact_id()
);
CREATE INDEX feed_xact ON feed (xact);

CREATE TABLE audit (
	seq    BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at     BIGINT NOT NULL,
	actor  TEXT NOT NULL,
	action TEXT NOT NULL,
	target TEXT NOT NULL,
	detail TEXT NOT NULL,
	hash   BYTEA NOT NULL,
	xact   XID8 NOT NULL DEFAULT pg_current_xact_id()
);
CREATE INDEX audit_xact ON audit (xact);

-- One row seals some rows of one table, named by their positions, and the seal before it.
CREATE TABLE seal (
	number    BIGINT NOT NULL PRIMARY KEY,
	epoch     BIGINT NOT NULL,
	at        BIGINT NOT NULL,
	source    TEXT NOT NULL,
	fields    TEXT NOT NULL,
	high      BIGINT NOT NULL,
	positions TEXT NOT NULL,
	members   BIGINT NOT NULL,
	content   BYTEA NOT NULL,
	hash      BYTEA NOT NULL,
	signature BYTEA NOT NULL
);
CREATE INDEX seal_source ON seal (source, epoch, high);

CREATE TABLE lease (
	name   TEXT NOT NULL PRIMARY KEY,
	holder TEXT NOT NULL,
	until  BIGINT NOT NULL
);

CREATE TABLE fact (
	name  TEXT NOT NULL PRIMARY KEY,
	value TEXT NOT NULL
);
