#!/bin/bash
# An ApiVersions request and the first bytes of its answer: a JVM for each look would cost a sixth of a core.
exec 3<>/dev/tcp/127.0.0.1/9092
printf '\0\0\0\12\0\22\0\0\0\0\0\1\377\377' >&3
[ "$(head -c 8 <&3 | tail -c 4 | od -An -tx1)" = " 00 00 00 01" ]
