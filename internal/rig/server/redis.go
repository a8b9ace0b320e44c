package server

import "strconv"

// Redis returns how to run Redis on a port of 127.0.0.1, with its data in dir. Settings
// of redis.conf may be appended to the arguments, as "--NAME", "VALUE". The caller sets
// Ready. The error is a [*MissingError].
func Redis(dir string, port int) (Config, error) {
	bin, err := Find("redis-server", "redis-server")
	if err != nil {
		return Config{}, err
	}
	return Config{Path: bin, Dir: dir,
		Args: []string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir}}, nil
}
