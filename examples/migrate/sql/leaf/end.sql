DELETE FROM leaf_alloc WHERE biz_tag = 'orders';
