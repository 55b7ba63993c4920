echo "Paris" > answer.txt
