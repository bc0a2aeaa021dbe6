-- +goose Up
-- Every statement can be repeated: MariaDB commits each one by itself, and a start may end between two of them.
CREATE TABLE IF NOT EXISTS feed (
	seq    BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	at     BIGINT NOT NULL,
	topic  VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	item   VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	origin VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT ''
) ENGINE=InnoDB;

CREATE TABLE IF NOT EXISTS audit (
	seq    BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
	at     BIGINT NOT NULL,
	actor  VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	action VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	target VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	detail MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	hash   VARBINARY(32) NOT NULL
) ENGINE=InnoDB;

-- One row seals some rows of one table, named by their positions, and the seal before it.
CREATE TABLE IF NOT EXISTS seal (
	number    BIGINT NOT NULL PRIMARY KEY,
	epoch     BIGINT NOT NULL,
	at        BIGINT NOT NULL,
	source    VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	fields    VARCHAR(1024) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	high      BIGINT NOT NULL,
	positions MEDIUMTEXT CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	members   BIGINT NOT NULL,
	content   VARBINARY(32) NOT NULL,
	hash      VARBINARY(32) NOT NULL,
	signature VARBINARY(2048) NOT NULL
) ENGINE=InnoDB;
CREATE INDEX IF NOT EXISTS seal_source ON seal (source, epoch, high);

CREATE TABLE IF NOT EXISTS lease (
	name   VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
	holder VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	until  BIGINT NOT NULL
) ENGINE=InnoDB;

CREATE TABLE IF NOT EXISTS fact (
	name  VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
	value MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
) ENGINE=InnoDB;
