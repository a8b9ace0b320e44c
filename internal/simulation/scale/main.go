package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

func main() {
	n, _ := strconv.Atoi(os.Args[1])
	w, _ := time.ParseDuration(os.Args[2])
	x, _ := strconv.ParseFloat(os.Args[3], 64)
	p := plan{processes: n, window: w, seed: 1}
	p.capacity = int64(p.rest() * x)
	t := time.Now()
	fmt.Printf("%d %v capacity %d rest %.1f\n%+v\n", n, w, p.capacity, p.rest(), simulate(p))
	fmt.Println(time.Since(t))
}
