-- +goose Up
-- AUTOINCREMENT: a number that was given once never comes again, even after the last row was retired.
CREATE TABLE feed (
	seq    INTEGER PRIMARY KEY AUTOINCREMENT,
	at     BIGINT NOT NULL,
	topic  TEXT NOT NULL,
	item   TEXT NOT NULL,
	origin TEXT NOT NULL DEFAULT ''
);

CREATE TABLE audit (
	seq    INTEGER PRIMARY KEY AUTOINCREMENT,
	at     BIGINT NOT NULL,
	actor  TEXT NOT NULL,
	action TEXT NOT NULL,
	target TEXT NOT NULL,
	detail TEXT NOT NULL,
	hash   BLOB NOT NULL
);

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
	content   BLOB NOT NULL,
	hash      BLOB NOT NULL,
	signature BLOB NOT NULL
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
