SELECT max_id FROM leaf_alloc WHERE biz_tag = 'orders';
