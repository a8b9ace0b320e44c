module github.com/tickflake/tickflake/stores/zookeeper

go 1.26.0

require github.com/tickflake/tickflake v0.0.0

require github.com/go-zookeeper/zk v1.0.4

replace github.com/tickflake/tickflake => ../../
