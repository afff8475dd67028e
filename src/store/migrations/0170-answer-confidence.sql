-- The mean confidence is exact; of answers counted before it is that of their tenths' middles.
ALTER TABLE set_answer_counts ADD COLUMN confidence double precision NOT NULL DEFAULT 0;
UPDATE set_answer_counts SET confidence = 0.05 * bin_0 + 0.15 * bin_1 + 0.25 * bin_2 + 0.35 * bin_3 + 0.45 * bin_4
  + 0.55 * bin_5 + 0.65 * bin_6 + 0.75 * bin_7 + 0.85 * bin_8 + 0.95 * bin_9;
