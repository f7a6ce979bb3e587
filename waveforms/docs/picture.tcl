# Run by GTKWave: takes a picture of the view and leaves.  gtkwave -S picture.tcl run.gtkw  ->  picture.png
update
gtkwave::/Time/Zoom/Zoom_Best_Fit
after 500
update
gtkwave::/File/Grab_To_File picture.png
gtkwave::/File/Quit
