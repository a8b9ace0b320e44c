UPDATE invoice_numbers SET counter = LAST_INSERT_ID(counter + 1) WHERE series = 'invoices';
INSERT INTO invoices (number, customer) VALUES (LAST_INSERT_ID(), 'Ada');
