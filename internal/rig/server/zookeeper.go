package server

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// zookeeperJar is where Debian's package zookeeper puts the server; its manifest names
// the other jars.
const zookeeperJar = "/usr/share/java/zookeeper.jar"

// ZooKeeper returns how to run a single ZooKeeper on a port of 127.0.0.1, with its data
// in dir. The caller sets Ready. The error is a [*MissingError], or that of
// writing zoo.cfg.
func ZooKeeper(dir string, port int) (Config, error) {
	if _, err := os.Stat(zookeeperJar); err != nil {
		return Config{}, &MissingError{Name: zookeeperJar, Package: "zookeeper"}
	}
	java, err := Find("java", "default-jre-headless")
	if err != nil {
		return Config{}, err
	}
	file := filepath.Join(dir, "zoo.cfg")
	text := fmt.Sprintf("tickTime=2000\ndataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\nmaxClientCnxns=0\n", dir, port)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return Config{}, fmt.Errorf("write ZooKeeper's configuration: %w", err)
	}
	return Config{Path: java, Dir: dir, Quit: syscall.SIGTERM,
		Args: []string{"-Xmx1000m", "-Dzookeeper.jmx.log4j.disable=true", "-cp", zookeeperJar + ":/usr/share/java/slf4j-nop.jar",
			"org.apache.zookeeper.server.quorum.QuorumPeerMain", file}}, nil
}
