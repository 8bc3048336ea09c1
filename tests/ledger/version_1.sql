-- A ledger as version 1 wrote it: never changed, so that every later version shows it can still read it.
CREATE TABLE dpselect_ledger_schema (version INTEGER NOT NULL PRIMARY KEY);
INSERT INTO dpselect_ledger_schema VALUES (1);
CREATE TABLE dpselect_ledger_datasets (id {serial} PRIMARY KEY, name VARCHAR(200) NOT NULL UNIQUE);
INSERT INTO dpselect_ledger_datasets (name) VALUES ('homes');
CREATE TABLE dpselect_ledger_entries (
    dataset INTEGER NOT NULL REFERENCES dpselect_ledger_datasets (id), number BIGINT NOT NULL,
    kind VARCHAR(16) NOT NULL, reservation BIGINT, "key" VARCHAR(64),
    epsilon BIGINT NOT NULL, delta BIGINT NOT NULL, rho BIGINT NOT NULL,
    sum_epsilon BIGINT NOT NULL, sum_delta BIGINT NOT NULL, sum_rho BIGINT NOT NULL,
    who VARCHAR(200) NOT NULL, at VARCHAR(40) NOT NULL, body TEXT NOT NULL,
    previous VARCHAR(64) NOT NULL, digest VARCHAR(64) NOT NULL,
    PRIMARY KEY (dataset, number), UNIQUE (dataset, kind, reservation)
) {without_rowid};
CREATE INDEX dpselect_ledger_keys ON dpselect_ledger_entries (dataset, "key");
INSERT INTO dpselect_ledger_entries VALUES (1, 1, 'create', NULL, NULL, 2000000000000000, 0, 0, 0, 0, 0, 'ann', '2026-01-01T08:00:00+00:00', '{"dataset":"homes","total":{"kind":"pure","shown_delta":0.0}}', '0000000000000000000000000000000000000000000000000000000000000000', 'a1ba5deb62f900233f504a927325e6e60a58cc452390e8f5bbc8bc42f4ee442d');
INSERT INTO dpselect_ledger_entries VALUES (1, 2, 'reserve', 2, '854494121f84d1fe511d100e18957c3cce9beb45e8de607ecf9246be11023a14', 500000000000000, 0, 0, 500000000000000, 0, 0, 'ann', '2026-01-02T08:00:00+00:00', '{"month":1,"verb":"peak"}', 'a1ba5deb62f900233f504a927325e6e60a58cc452390e8f5bbc8bc42f4ee442d', 'ed7719fc1c09a3e2100f5f520c954fb88b4facd27c5d970084732d3939a9434c');
INSERT INTO dpselect_ledger_entries VALUES (1, 3, 'settle', 2, NULL, 500000000000000, 0, 0, 500000000000000, 0, 0, 'ann', '2026-01-03T08:00:00+00:00', '{"answer":{"label":"2013-01-20"}}', 'ed7719fc1c09a3e2100f5f520c954fb88b4facd27c5d970084732d3939a9434c', '9242cdc934c7f1a80a6852eee62cf0482ed255e067f6b14255e94cec6b844346');
INSERT INTO dpselect_ledger_entries VALUES (1, 4, 'reserve', 4, '9b80e4e795f7dacef1e100085e3088fa9f18653bd2c746774555b8b4dc395a43', 500000000000000, 0, 0, 1000000000000000, 0, 0, 'ann', '2026-01-04T08:00:00+00:00', '{"verb":"watch"}', '9242cdc934c7f1a80a6852eee62cf0482ed255e067f6b14255e94cec6b844346', '03f9dd472eca4a8ffd04ebc9657f987852722cd2ee2ca623c32c94fff956d465');
INSERT INTO dpselect_ledger_entries VALUES (1, 5, 'settle', 4, NULL, 125000000000000, 0, 0, 625000000000000, 0, 0, 'ann', '2026-01-05T08:00:00+00:00', '{"answer":"it''s below"}', '03f9dd472eca4a8ffd04ebc9657f987852722cd2ee2ca623c32c94fff956d465', '90f8c977a935829364f4563e23d1ab57b4c224b2a41b1367fe5285f8a8c5edc9');
INSERT INTO dpselect_ledger_entries VALUES (1, 6, 'reserve', 6, '44e0ea6bb0d788058624748b0435a83e64544bb0148ee9f9ea986f14ebf6b721', 250000000000000, 0, 0, 875000000000000, 0, 0, 'ann', '2026-01-06T08:00:00+00:00', '{"month":2,"verb":"peak"}', '90f8c977a935829364f4563e23d1ab57b4c224b2a41b1367fe5285f8a8c5edc9', '6f424eb8366ca328924dd39546ee5c55e4337457bd3a0458855d27d908101b6c');
