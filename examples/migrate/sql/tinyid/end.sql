DELETE FROM tiny_id_info WHERE biz_type = 'orders';
