-- Jobs that propose which texts to label next; those of kept requests come into the review queue.
ALTER TABLE question_set_jobs
  DROP CONSTRAINT question_set_jobs_kind_check,
  ADD CONSTRAINT question_set_jobs_kind_check CHECK (kind IN ('teach', 'check', 'compare', 'next'));
ALTER TABLE review_items
  DROP CONSTRAINT review_items_reason_check,
  ADD CONSTRAINT review_items_reason_check
    CHECK (reason IN ('abstained', 'low_confidence', 'shadow_differs', 'audit', 'label_next'));
