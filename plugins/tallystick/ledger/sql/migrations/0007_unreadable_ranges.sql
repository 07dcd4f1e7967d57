-- A new value of a type can be used only after the transaction that added it: so it has a step of
-- its own.

ALTER TYPE range_state ADD VALUE 'unreadable';
