-- A set answers as its published version, which teaching never moves. Sets that had none were answered by their latest.
INSERT INTO question_set_labels (set_id, label, number, updated_by, updated_at)
SELECT s.id, 'production', s.latest, NULL, s.updated_at FROM question_sets s
WHERE NOT EXISTS (SELECT 1 FROM question_set_labels l WHERE l.set_id = s.id AND l.label = 'production')
  AND (SELECT count(*) FROM question_set_labels l WHERE l.set_id = s.id) < 100;
