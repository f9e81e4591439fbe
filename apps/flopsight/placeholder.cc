namespace flopsight::app {}
